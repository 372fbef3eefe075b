package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newConfig(e env) *cobra.Command {
	var file string
	format := formatFlag("text")
	check := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Load the whole configuration without serving",
		Long: `Load the whole configuration, as serving would, and say what is wrong with it:
a line for each fault, with file, line and column, what was found and what was
expected. The exit code is 0 when it is valid, else 2.

With --format json it is one object on standard output: valid, file, digest, tools,
and the lists faults and warnings. Each element has file, line, column (from 1; 0 where
there is none), pointer, the JSON Pointer of the key or value in its file ("" is the
whole of it; absent where the text itself is at fault, and in a policy), message, and
found and expected where the message says both.

FILE is the same as --config FILE. Without both, it is the file that CALLGATE_CONFIG
names, else callgate.yaml in this folder, else the built-in example, as for every
command.`,
		Example: `  callgate config check
  callgate config check gateway/callgate.yaml
  callgate config check --format json | jq '.faults[] | .message'`,
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
			if format == "json" {
				return checkAsJSON(e, file)
			}
			c, err := e.Load(file)
			if err != nil {
				return err
			}
			fmt.Fprintf(e.Stdout, "%s is valid: %d files, %d tools, digest %s\n", c.Files[0], len(c.Files), len(c.Tools.Entries()), c.Digest)
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"yaml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	configFlag(check, &file)
	check.Flags().Var(&format, "format", "print in this `FORMAT`: text, or json, one object with all faults and warnings")
	_ = check.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return group("config", "Work on the configuration", check, newConfigFormat(e), newConfigSeal(e), newConfigSchema(e))
}
