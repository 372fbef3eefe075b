package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newConfig(e env) *cobra.Command {
	parent := &cobra.Command{
		Use:   "config",
		Short: "Work on the configuration",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	var file string
	check := &cobra.Command{
		Use:   "check",
		Short: "Load the whole configuration without serving",
		Long: `Load the whole configuration, as serving would, and say what is wrong with it:
a line for each fault, with file, line and column, what was found and what was
expected. The exit code is 0 when it is valid, else 2.`,
		Example: "  callgate config check --config callgate.yaml",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := e.load(file)
			if err != nil {
				return err
			}
			fmt.Fprintf(e.stdout, "%s is valid: %d files, %d tools, digest %s\n", c.Files[0], len(c.Files), len(c.Tools.Entries()), c.Digest)
			return nil
		},
	}
	configFlag(check, &file)
	parent.AddCommand(check)
	return parent
}
