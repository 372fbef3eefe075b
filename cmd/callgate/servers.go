package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/toolservers"
	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/internal/cli"
)

func newServers(e env) *cobra.Command {
	parent := group("servers", "List, accept and export tools of tool servers", newServersList(e), newServersAccept(e), newServersExport(e))
	parent.Long = `List, accept and export tools of the servers in the servers file. A tool can be called once
an operator has accepted its definition: name, description and schemas. If its server changes
it, calls are tool_quarantined until the new one is accepted. Accepted definitions are in
data_dir/servers; a running gateway reloads them.`
	return parent
}

func newServersList(e env) *cobra.Command {
	var asJSON bool
	c := e.WithConfig(&cobra.Command{
		Use:   "list [SERVER]",
		Short: "Ask the servers what they have, beside what was accepted",
		Long: `Ask each server, or one, for its tools. STATE is one of

  accepted     may be called, where the policy allows it
  changed      quarantined: its definition differs from the accepted one
  gone         quarantined: accepted, and the server no longer has it
  unreadable   quarantined: accepted, and its definition cannot be read
  new          quarantined: never accepted
  not allowed  not among those that the servers file allows
  unusable     cannot be accepted, for the reason beside it

Exit code 1: a server did not answer, or not validly.`,
		Example: "  callgate servers list --config callgate.yaml",
		Args:    arguments(0, 1),
	}, func(ctx context.Context, loaded *configs.Config, args []string) error {
		chosen, err := chosenServers(loaded, args)
		if err != nil {
			return err
		}
		var unknown []lockfile.Server
		for _, s := range chosen {
			if len(loaded.Pins[s.Name]) == 0 {
				unknown = append(unknown, s)
			}
		}
		if e.ShowPrograms(loaded.ServersFile, unknown) && e.IsTerminal() && !e.Confirm("Start them? [y/N] ") {
			fmt.Fprintln(e.Stderr, "nothing was started")
			return cli.ErrRefused
		}
		discoverer := e.Engine()
		defer discoverer.Close()
		return toolservers.PrintList(ctx, discoverer, loaded, chosen, asJSON, e.Stdout, e.Stderr)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, an object a line")
	return c
}

func newServersExport(e env) *cobra.Command {
	return e.WithConfig(&cobra.Command{
		Use:   "export SERVER",
		Short: "Print what was accepted of a server, for another gateway",
		Long: `Print the accepted tools of a server as JSON, with their schemas and the digest of what it
stated, for "servers accept --from" on another gateway. The server is not asked. Exit code 2:
nothing was accepted.`,
		Example: `  callgate servers export github --config callgate.yaml > github.json`,
		Args:    arguments(1, 1),
	}, func(_ context.Context, loaded *configs.Config, args []string) error {
		chosen, err := chosenServers(loaded, args)
		if err != nil {
			return err
		}
		data, err := toolservers.Export(loaded, chosen[0])
		if err != nil {
			return err
		}
		_, err = e.Stdout.Write(data)
		return err
	})
}

// chosenServers are the servers of a configuration that arguments name, or all.
func chosenServers(loaded *configs.Config, names []string) ([]lockfile.Server, error) {
	if len(loaded.Servers) == 0 {
		return nil, fmt.Errorf("%s has no servers; expected the key servers, which names their file", loaded.Files[0])
	}
	if len(names) == 0 {
		return loaded.Servers, nil
	}
	at := slices.IndexFunc(loaded.Servers, func(s lockfile.Server) bool { return s.Name == names[0] })
	if at < 0 {
		return nil, fmt.Errorf("there is no server %q in %s", names[0], loaded.ServersFile)
	}
	return loaded.Servers[at : at+1], nil
}
