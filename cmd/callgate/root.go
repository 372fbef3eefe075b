package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func newRoot(e env) *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "callgate",
		Short: "A strict gateway between language models and tools",
		Long: `Callgate stands between a language model and the engine that runs its tools.

A completion is plain text, or exactly one call of a registered tool with the arguments
that its schema asks for:
  {"tool":{"name":"web.search","arguments":{"query":"agent memory"}}}
Anything else is refused, with a message that tells the model what to change.

The configuration is the file of --config, else of CALLGATE_CONFIG, else ./callgate.yaml,
else a built-in example (agents Analyst and Intern, workspace acme, project alpha), and a
line says so.

Exit codes: 0 accepted or done, 1 refused, 2 usage or configuration, 3 internal.`,
		Example: `  callgate demo
  echo '{"tool":{"name":"time.now","arguments":{}}}' | callgate check`,
		SilenceErrors:              true,
		SilenceUsage:               true,
		Args:                       knownCommand,
		SuggestionsMinimumDistance: wrongLetters,
		RunE: func(c *cobra.Command, args []string) error {
			if version {
				return printVersion(e)
			}
			return needsCommand(c, args)
		},
	}
	root.Flags().BoolVar(&version, "version", false, "print the version, as the command version does")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w; %q tells more", err, c.CommandPath()+" --help")
	})
	section(root, "start", "To begin:", newDemo(e), newInit(e), newServe(e), newCheck(e), newCall(e), newHooks(e))
	section(root, "connect", "To connect applications and models:", newMCP(e), newACP(e))
	section(root, "configure", "To configure:", newConfig(e), newTools(e), newServers(e), newPolicy(e), newKeys(e))
	section(root, "operate", "To operate:", newApprovals(e), newStop(e), newStops(e), newResume(e), newAudit(e), newHealthcheck(e))
	section(root, "program", "Of the program itself:", newVersion(e))
	root.SetHelpCommandGroupID("program")
	root.SetCompletionCommandGroupID("program")
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		switch c.Name() { // those of cobra end with 0 whatever stands behind them
		case "completion":
			c.Args, c.RunE = knownCommand, needsCommand
		case "help":
			c.Args = func(c *cobra.Command, args []string) error {
				of, unknown, err := c.Root().Find(args)
				return errors.Join(err, knownCommand(of, unknown))
			}
		}
	}
	return root
}

// section adds commands below a title of their own in the help.
func section(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, c := range commands {
		c.GroupID = id
		root.AddCommand(c)
	}
}
