package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/toolservers"
	"github.com/callgate/callgate/internal/cli"
)

func newServersAccept(e env) *cobra.Command {
	var from fileFlag
	digest := digestFlag{printedBy: "--dry-run"}
	var dryRun, yes bool
	c := e.WithConfig(&cobra.Command{
		Use:   "accept SERVER [TOOL ...]",
		Short: "Accept the current tool definitions of a server",
		Long: `Ask a server for its tools and accept the definitions of all that the servers file allows, or
of the named TOOLs. A line for each says what changed, and if its schema was rewritten from
another dialect. Tools that the server no longer has are forgotten. If the configuration
would not load with the result (equal names where dots are not allowed, a condition of the
policy), nothing is accepted, with exit code 2.

The server's program is started to be asked, after its command line was shown. On a terminal
you are asked first, unless --yes; elsewhere nobody asks, so look at servers.yaml first in a
folder that somebody else wrote.

--dry-run prints a digest of all definitions; --expect accepts only that, so that changes
after your review are found. The digest at the end accepts the same on other gateways, each
with a data_dir of its own. --from replaces all accepted tools of the server, without asking it.

Exit code 1: a tool that cannot be judged strictly was left out, with the reason.`,
		Example: `  callgate servers accept github --dry-run --config callgate.yaml
  callgate servers accept github search_repositories --expect 5f1c… --config callgate.yaml`,
		Args: arguments(1, math.MaxInt),
	}, func(ctx context.Context, loaded *configs.Config, args []string) error {
		chosen, err := chosenServers(loaded, args)
		if err != nil {
			return err
		}
		a := toolservers.Accepter{Loaded: loaded, Server: chosen[0], DryRun: dryRun, Digest: digest.digest, Out: e.Stdout, Err: e.Stderr}
		if from == "" {
			if e.ShowPrograms(loaded.ServersFile, chosen) && !yes && e.IsTerminal() && !e.Confirm("Start it? [y/N] ") {
				fmt.Fprintln(e.Stderr, "nothing was started, and nothing is accepted")
				return cli.ErrRefused
			}
			discoverer := e.Servers()
			defer discoverer.Close()
			return a.Ask(ctx, discoverer, args[1:])
		}
		if len(args) > 1 {
			return errors.New("found names of tools beside --from; expected none, since the file says which")
		}
		name, text, err := e.Definitions(ctx, []string{string(from)})
		if err != nil {
			return err
		}
		return a.File(name, text)
	})
	c.Flags().BoolVar(&dryRun, "dry-run", false, "print what would change, and change nothing")
	c.Flags().BoolVar(&yes, "yes", false, "start the server's program without asking")
	c.Flags().Var(&digest, "expect", "accept only definitions with this `DIGEST`")
	c.Flags().Var(&from, "from", "accept the definitions in `FILE`, written by export (-: standard input)")
	return c
}
