package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs"
)

func newConfig(e env) *cobra.Command {
	return group("config", "Work on the configuration", e.withConfig(&cobra.Command{
		Use:   "check",
		Short: "Load the whole configuration without serving",
		Long: `Load the whole configuration, as serving would, and say what is wrong with it:
a line for each fault, with file, line and column, what was found and what was
expected. The exit code is 0 when it is valid, else 2.`,
		Example: "  callgate config check --config callgate.yaml",
		Args:    cobra.NoArgs,
	}, func(_ context.Context, c *configs.Config, _ []string) error {
		fmt.Fprintf(e.stdout, "%s is valid: %d files, %d tools, digest %s\n", c.Files[0], len(c.Files), len(c.Tools.Entries()), c.Digest)
		return nil
	}))
}
