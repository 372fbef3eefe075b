package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newRoot(e env) *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "callgate",
		Short: "A strict gateway between language models and tools",
		Long: `Callgate stands between a language model and the engine that runs its tools.

A completion is exactly one strict tool call,
  {"tool":{"name":"web.search","arguments":{"query":"agent memory"}}}
or plain text. Anything else is refused, with a message that tells the model
what to change. A call must name a registered tool exactly and give it exactly
the arguments that its schema asks for.

The configuration is the file of --config, else the one that CALLGATE_CONFIG names,
else callgate.yaml in this folder, else the built-in example, which is said: demo
tools, the agents Analyst and Intern, the workspace acme with the project alpha.

Exit codes: 0 accepted or done, 1 refused, 2 usage or configuration, 3 internal.`,
		Example: `  callgate demo
  echo '{"tool":{"name":"time.now","arguments":{}}}' | callgate check
  callgate check --config gateway/callgate.yaml completion.txt
  callgate config check`,
		SilenceErrors:              true,
		SilenceUsage:               true,
		Args:                       knownCommand,
		SuggestionsMinimumDistance: wrongLetters,
		RunE: func(c *cobra.Command, _ []string) error {
			if version {
				return printVersion(e)
			}
			return c.Help()
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
