package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/identity"
)

// defaultKeptKeys is how many keys stand beside a new one, unless it is said.
const defaultKeptKeys = 7

func newCallbackKeys(e env) *cobra.Command {
	var config string
	var lead time.Duration
	var keep int
	c := &cobra.Command{
		Use:   "callback",
		Short: "Add a key for the addresses at which tools answer",
		Long: `Add a key to the file of the keys by which the addresses are made that tools call
back at, and make the file where it is not there. Gateways that serve take it up by
themselves. The new key signs after a while, so that by then every gateway knows it;
the older ones go on to be believed, up to as many as are kept. An address whose key
is not kept is not believed any more: keep them for as long as tools may take.`,
		Example: `  callgate keys callback --config callgate.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if lead < 0 || keep < 0 {
				return fmt.Errorf("found a number below 0; expected how long to wait, and how many keys to keep")
			}
			loaded, err := e.load(config)
			if err != nil {
				return err
			}
			file, err := CallbackKeyFile(loaded)
			if err != nil {
				return err
			}
			keys, from, err := RotateCallbackKeys(file, time.Now(), lead, keep)
			if err != nil {
				return fmt.Errorf("%s: %w", file, reason(err))
			}
			fmt.Fprintf(e.stdout, "%s: %d keys; the newest signs from %s\n", file, keys.Len(), from.UTC().Format(time.RFC3339))
			return nil
		},
	}
	configFlag(c, &config)
	c.Flags().DurationVar(&lead, "in", KeyLeadTime, "the `time` after which the new key signs")
	c.Flags().IntVar(&keep, "keep", defaultKeptKeys, "how many older `keys` are kept")
	return c
}

// CallbackKeyFile is the file of the keys of a configuration.
func CallbackKeyFile(c *configs.Config) (string, error) {
	place := c.Callbacks.Keys.String()
	if place == "" {
		return configs.CallbackKeysPath(c.DataDir), os.MkdirAll(c.DataDir, 0o700)
	}
	file, ok := strings.CutPrefix(place, "file:")
	if !ok {
		return "", fmt.Errorf("callbacks.keys are at %s; expected a file, to which a key can be added", place)
	}
	return file, nil
}

// RotateCallbackKeys adds a key to a file.
func RotateCallbackKeys(file string, now time.Time, lead time.Duration, keep int) (*identity.CallbackKeys, time.Time, error) {
	var keys *identity.CallbackKeys
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		lead = 0 // no other signs meanwhile
	case err != nil:
		return nil, now, err
	default:
		if keys, err = identity.ParseCallbackKeys(string(text)); err != nil {
			return nil, now, err
		}
	}
	keys = keys.Rotate(now.Add(lead), keep)
	return keys, now.Add(lead), replaceFile(file, keys.Encode())
}
