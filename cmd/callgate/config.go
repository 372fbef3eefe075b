package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newConfig(e env) *cobra.Command {
	var file string
	check := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Load the whole configuration without serving",
		Long: `Load the whole configuration, as serving would, and say what is wrong with it:
a line for each fault, with file, line and column, what was found and what was
expected. The exit code is 0 when it is valid, else 2.

FILE is the same as --config FILE. Without both, it is the file that CALLGATE_CONFIG
names, else callgate.yaml in this folder, else the built-in example, as for every
command.`,
		Example: `  callgate config check
  callgate config check gateway/callgate.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				if file != "" {
					return fmt.Errorf("found the file %s beside --config %s; expected one of them", args[0], file)
				}
				if err := (*fileFlag)(&file).Set(args[0]); err != nil {
					return err
				}
			}
			c, err := e.load(file)
			if err != nil {
				return err
			}
			fmt.Fprintf(e.stdout, "%s is valid: %d files, %d tools, digest %s\n", c.Files[0], len(c.Files), len(c.Tools.Entries()), c.Digest)
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"yaml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	configFlag(check, &file)
	return group("config", "Work on the configuration", check, newConfigSchema(e))
}
