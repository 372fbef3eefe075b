package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/app"

	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/internal/text"
)

// defaultKeptKeys is how many keys stand beside a new one, unless it is said.
const defaultKeptKeys = 7

func newCallbackKeys(e env) *cobra.Command {
	var config string
	lead := app.KeyLeadTime
	var keep int
	c := &cobra.Command{
		Use:   "callback",
		Short: "Add a key for the callback URLs of tools",
		Long: `Add a key to the file that signs callback URLs of tools, or make the file. Running gateways
reload it. Older keys still verify, as many as are kept; a URL of any other is refused, so
keep keys for as long as tools may take to answer.`,
		Example: `  callgate keys callback --config callgate.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if lead < 0 || keep < 0 {
				return fmt.Errorf("found a number below 0; expected how long to wait, and how many keys to keep")
			}
			loaded, err := e.Load(config)
			if err != nil {
				return err
			}
			file, err := app.CallbackKeyFile(loaded)
			if err != nil {
				return err
			}
			keys, from, err := app.RotateCallbackKeys(file, time.Now(), lead, keep)
			if err != nil {
				return fmt.Errorf("%s: %w", file, oserr.Reason(err))
			}
			fmt.Fprintf(e.Stdout, "%s: %s; the newest signs from %s\n", file, text.Count(keys.Len(), "key"), from.UTC().Format(time.RFC3339))
			return nil
		},
	}
	configFlag(c, &config)
	c.Flags().Var((*durationFlag)(&lead), "in", "the `TIME` until the new key signs, so that every gateway knows it")
	c.Flags().IntVar(&keep, "keep", defaultKeptKeys, "how many older `KEYS` are kept")
	return c
}
