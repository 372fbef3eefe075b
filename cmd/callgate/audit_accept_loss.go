package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
)

func newAuditAcceptLoss(e env) *cobra.Command {
	var config string
	c := &cobra.Command{
		Use:   "accept-loss",
		Short: "Accept that keys are unknown which Redis and the audit log have lost",
		Long: `With store: {kind: redis}, each gateway reads its own audit log after Redis has lost
data: there it finds which idempotency keys were used in the time that is lost,
at most a day. If files of that time were moved away, or a line is damaged, some
keys are unknown. A call that repeats one of them would be executed a second time,
so the gateway refuses calls with keys, and says so in its log.

If you can, put the files back into data_dir and start the gateway again: it then
reads them, and no key is lost. If you cannot, this command accepts the loss: from
then on calls with keys are executed again, and a key that is unknown starts a new
call. Before you run it, stop clients from repeating calls of the time that is
missing.

It notes the time in data_dir, while the gateway runs. Losses are accepted that the
gateway has noticed by then, and no later one. Run it for each gateway that refuses
calls for this reason: with its configuration, on its host, as its user.`,
		Example: `  callgate audit accept-loss --config /etc/callgate/callgate.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := e.LoadUntested(config)
			if err != nil {
				return err
			}
			if c.Store.Kind != configs.StoreRedis {
				return fmt.Errorf("store.kind is %s: only what Redis has lost can be accepted", c.Store.Kind)
			}
			now := time.Now()
			for _, dir := range logFolders(c.DataDir) {
				if err := app.AcceptLoss(dir, now); err != nil {
					return fmt.Errorf("cannot accept the loss: %w", err)
				}
				fmt.Fprintf(e.Stdout, "%s: losses of Redis that the gateway has noticed before %s are accepted\n", dir, now.Format(time.RFC3339))
			}
			return nil
		},
	}
	configFlag(c, &config)
	return c
}
