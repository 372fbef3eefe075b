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
	parent.Long = `The servers file (servers: in the configuration) names servers with tools of their
own. A tool may not be called before an operator has accepted its definition: its
name, its description and its schemas. Accepted definitions are stored in data_dir,
under servers, and a running gateway reloads them by itself. When a server changes
a definition, the tool is refused as tool_quarantined until the new definition is
accepted.`
	return parent
}

func newServersList(e env) *cobra.Command {
	var asJSON bool
	c := e.WithConfig(&cobra.Command{
		Use:   "list [SERVER]",
		Short: "Ask the servers what they have, beside what was accepted",
		Long: `Ask each server, or one, for its tools. STATE is one of

  accepted     may be called, where the policy lets it
  changed      its server says something else than what was accepted: in quarantine
  gone         was accepted, and its server does not have it any more: in quarantine
  unreadable   was accepted, and what its server says cannot be read: in quarantine
  new          was never accepted: in quarantine
  not allowed  is not among those that the servers file allows
  unusable     cannot be taken up, for the reason beside it

The exit code is 1 where a server cannot be asked, or not be understood.`,
		Example: "  callgate servers list --config callgate.yaml",
		Args:    cobra.MaximumNArgs(1),
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
	c.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON for each tool")
	return c
}

func newServersExport(e env) *cobra.Command {
	return e.WithConfig(&cobra.Command{
		Use:   "export SERVER",
		Short: "Print what was accepted of a server, for another gateway",
		Long: `Print what was accepted of a server, as JSON: each tool with its schemas, and the
digest of what the server stated. servers accept --from takes it up elsewhere. The
server is not asked. Where nothing was accepted of it, the exit code is 2.`,
		Example: `  callgate servers export github --config callgate.yaml > github.json
  callgate servers accept github --from github.json --config callgate.yaml`,
		Args: cobra.ExactArgs(1),
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
