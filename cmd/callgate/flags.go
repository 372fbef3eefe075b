package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/internal/duration"
)

// configFlag adds the flag --config.
func configFlag(c *cobra.Command, into *string) {
	c.Flags().Var((*fileFlag)(into), "config",
		"the main `FILE` of the configuration (default: $"+configVariable+", else ./"+hereFile+", else the built-in example)")
	// A flag that was just added can be marked.
	_ = c.MarkFlagFilename("config", "yaml")
}

// notEmpty refuses flags that are stated and empty, as of a variable of the shell that was not set.
func notEmpty(c *cobra.Command, names ...string) error {
	for _, name := range names {
		if c.Flags().Changed(name) && c.Flags().Lookup(name).Value.String() == "" {
			return fmt.Errorf("--%s is empty; expected a value, or no --%s", name, name)
		}
	}
	return nil
}

// fileFlag is a flag that names a file: an empty name is a variable of the shell
// that was not set, and must not mean another file.
type fileFlag string

func (f *fileFlag) String() string { return string(*f) }

func (f *fileFlag) Type() string { return "file" }

func (f *fileFlag) Set(s string) error {
	if s == "" {
		return errors.New("the name is empty")
	}
	*f = fileFlag(s)
	return nil
}

// formatFlag is a flag that is text or json.
type formatFlag string

func (f *formatFlag) String() string { return string(*f) }

func (f *formatFlag) Type() string { return "format" }

func (f *formatFlag) Set(s string) error {
	if s != "text" && s != "json" {
		return fmt.Errorf("found %q; expected text or json", s)
	}
	*f = formatFlag(s)
	return nil
}

// digestFlag is a digest as another command prints it. It is never empty where it is stated: a
// script whose variable holds nothing does not mean anything at all.
type digestFlag struct{ digest, printedBy string }

func (d *digestFlag) String() string { return d.digest }
func (d *digestFlag) Type() string   { return "digest" }
func (d *digestFlag) Set(s string) error {
	if sum, err := hex.DecodeString(s); err != nil || len(sum) != sha256.Size || s != strings.ToLower(s) {
		return errors.New("expected 64 hexadecimal digits, as " + d.printedBy + " prints them")
	}
	d.digest = s
	return nil
}

// durationFlag is a flag that is a duration as configuration writes it.
type durationFlag time.Duration

func (f *durationFlag) Type() string { return "duration" }

func (f *durationFlag) String() string {
	if *f == 0 { // no default
		return ""
	}
	return duration.Spell(time.Duration(*f))
}

func (f *durationFlag) Set(s string) error {
	d, ok := duration.Read(s)
	if !ok {
		return errors.New("expected " + duration.Expected)
	}
	*f = durationFlag(d)
	return nil
}
