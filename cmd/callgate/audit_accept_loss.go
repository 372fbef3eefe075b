package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/app"
)

func newAuditAcceptLoss(e env) *cobra.Command {
	var config string
	c := &cobra.Command{
		Use:   "accept-loss",
		Short: "Accept that keys or threads are unknown which the store and the audit log have lost",
		Long: `Accept that the store and the audit log have lost idempotency keys, or what threads have done.

With store: {kind: redis}, each gateway finds the keys that Redis has lost, of a day at most,
in its own audit log. If files of that time are missing, or a line is damaged, a repeated
call could run twice: the gateway refuses calls with keys, and logs it.

If you can, put the files back into data_dir and restart: no key is lost. If you cannot, stop
clients from repeating calls of that time, then run this command, for each such gateway: with
its configuration, on its host, as its user, while it runs. Calls with keys run again, and an
unknown key starts a new call. Later losses are not accepted.

Where the policy asks what threads have done and both threads.bin and older files of the log
are gone, such conditions fail. Once you accept that, these threads have done nothing.`,
		Example: `  callgate audit accept-loss --config /etc/callgate/callgate.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := e.LoadUntested(config)
			if err != nil {
				return err
			}
			now := time.Now()
			folders, err := logFolders(c.DataDir)
			if err != nil {
				return fmt.Errorf("cannot accept the loss: %w", err)
			}
			for _, dir := range folders {
				if err := app.AcceptLoss(dir, now); err != nil {
					return fmt.Errorf("cannot accept the loss: %w", err)
				}
				fmt.Fprintf(e.Stdout, "%s: losses that the gateway has noticed before %s are accepted\n", dir,
					now.Format(time.RFC3339))
			}
			return nil
		},
	}
	configFlag(c, &config)
	return c
}
