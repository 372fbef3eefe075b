package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/toolservers"
	"github.com/callgate/callgate/internal/cli"
)

func newServersAccept(e env) *cobra.Command {
	var from fileFlag
	var digest digestFlag
	var dryRun, yes bool
	c := e.WithConfig(&cobra.Command{
		Use:   "accept SERVER [TOOL ...]",
		Short: "Accept the current tool definitions of a server",
		Long: `Ask a server for its tools and accept their definitions: those of all tools that the
servers file allows, or of the named ones, as the server names them. One line for
each tool says what changed (with --dry-run: would change). A tool that cannot be judged strictly is left out, with
the reason; then the exit code is 1. A tool that its server no longer has is
forgotten. If the configuration would not load with these tools, because two names
are equal where dots are not allowed or because of a condition of the policy, nothing
is accepted, and the exit code is 2.

Schemas in the words of other dialects are rewritten, and a line says so.

A program is started only to ask it for its tools, after its command line was shown
and, on a terminal, after you have said yes (or with --yes). Look at the line first in
a folder that somebody else wrote.

Nothing is ever accepted automatically. Review with --dry-run, which also prints a
digest of all definitions; with --expect, only definitions with that digest are
accepted, so that a server that changes them after your review is found. Every
acceptance prints the digest at its end: use it to accept the same on other gateways,
each of which has a data_dir of its own.

With --from, the server is not asked: the definitions come from a file that servers
export wrote on another gateway, and replace all that were accepted of the server.`,
		Example: `  callgate servers accept github --dry-run --config callgate.yaml
  callgate servers accept github --expect 5f1c… --config callgate.yaml
  callgate servers accept github search_repositories --config callgate.yaml
  callgate servers accept github --from github.json --config callgate.yaml`,
		Args: cobra.MinimumNArgs(1),
	}, func(ctx context.Context, loaded *configs.Config, args []string) error {
		chosen, err := chosenServers(loaded, args)
		if err != nil {
			return err
		}
		a := toolservers.Accepter{Loaded: loaded, Server: chosen[0], DryRun: dryRun, Digest: string(digest), Out: e.Stdout, Err: e.Stderr}
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
	c.Flags().Var(&from, "from", "accept the definitions of this `FILE`, which export wrote; - is standard input")
	return c
}
