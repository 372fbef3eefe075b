package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/cli"
)

func newTools(e env) *cobra.Command {
	return group("tools", "List and import tools, and print the schema of their calls", newToolsList(e), newToolsImport(e),
		newToolsGrammar(e))
}

// listed is one line of tools list --json.
type listed struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Kind        string `json:"kind"`
	Effect      string `json:"effect"`
	Run         string `json:"run"`
	Description string `json:"description"`
}

func newToolsList(e env) *cobra.Command {
	var asJSON bool
	c := e.WithConfig(&cobra.Command{
		Use:   "list",
		Short: "List the registered tools",
		Args:  cobra.NoArgs,
	}, func(_ context.Context, loaded *configs.Config, _ []string) error {
		table := cli.NewTable(e.Stdout, asJSON, "NAME", "VERSION", "KIND", "EFFECT", "RUN", "DESCRIPTION")
		for _, t := range loaded.Tools.Entries() {
			row := listed{t.Name(), t.Version(), t.Kind(), t.Effect(), t.Run().Type, t.Description()}
			if err := table.Print(row, row.Name, row.Version, row.Kind, row.Effect, row.Run, cli.FirstLine(row.Description)); err != nil {
				return err
			}
		}
		return table.Flush()
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, an object a line")
	return c
}
