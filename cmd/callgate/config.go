package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/internal/text"
)

func newConfig(e env) *cobra.Command {
	var file string
	format := formatFlag("text")
	check := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Load the whole configuration without serving",
		Long: `Load the configuration as serving would, and print each fault with file, line and column,
what was found and what was expected. FILE is the same as --config FILE.

--format json prints one object: valid, file, digest, tools, faults, warnings. A fault has
file, line, column (0: none), pointer (the JSON Pointer of the key or value; absent in a
policy, or where the text itself is at fault), message, and found and expected if known.

Exit code 2: a fault.`,
		Example: `  callgate config check --format json | jq '.faults[] | .message'`,
		Args:    arguments(0, 1),
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
			fmt.Fprintf(e.Stdout, "%s is valid: %s, %s, digest %s\n", c.Files[0], text.Count(len(c.Files), "file"),
				text.Count(len(c.Tools.Entries()), "tool"), c.Digest)
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"yaml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	configFlag(check, &file)
	check.Flags().Var(&format, "format", "print `FORMAT`: text or json")
	_ = check.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return group("config", "Work on the configuration", check, newConfigFormat(e), newConfigSeal(e), newConfigSchema(e))
}
