package cmdenv

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// ConfigFlag adds the flag --config.
func ConfigFlag(c *cobra.Command, into *string) {
	c.Flags().Var((*FileFlag)(into), "config", "the main `FILE` of the configuration (default: $"+ConfigVariable+", else ./"+hereFile+", else the built-in example)")
	// A flag that was just added can be marked.
	_ = c.MarkFlagFilename("config", "yaml")
}

// FileFlag is a flag that names a file: an empty name is a variable of the shell
// that was not set, and must not mean another file.
type FileFlag string

func (f *FileFlag) String() string { return string(*f) }

func (f *FileFlag) Type() string { return "file" }

func (f *FileFlag) Set(s string) error {
	if s == "" {
		return errors.New("the name is empty")
	}
	*f = FileFlag(s)
	return nil
}

// FormatFlag is a flag that is text or json.
type FormatFlag string

func (f *FormatFlag) String() string { return string(*f) }

func (f *FormatFlag) Type() string { return "format" }

func (f *FormatFlag) Set(s string) error {
	if s != "text" && s != "json" {
		return fmt.Errorf("found %q; expected text or json", s)
	}
	*f = FormatFlag(s)
	return nil
}

// DigestFlag is a digest as accept prints it. It is never empty where it is stated: a
// script whose variable holds nothing does not mean anything at all.
type DigestFlag string

func (d *DigestFlag) String() string { return string(*d) }
func (d *DigestFlag) Type() string   { return "digest" }
func (d *DigestFlag) Set(s string) error {
	if sum, err := hex.DecodeString(s); err != nil || len(sum) != sha256.Size || s != strings.ToLower(s) {
		return errors.New("expected 64 hexadecimal digits, as --dry-run prints them")
	}
	*d = DigestFlag(s)
	return nil
}
