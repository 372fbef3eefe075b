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
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownCommand,
		// Of a whole name: two letters may be wrong.
		SuggestionsMinimumDistance: 2,
		RunE: func(c *cobra.Command, _ []string) error {
			if version {
				return e.printVersion()
			}
			return c.Help()
		},
	}
	root.Flags().BoolVar(&version, "version", false, "print the version, as the command version does")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w; %q tells more", err, c.CommandPath()+" --help")
	})
	root.AddCommand(newDemo(e), newInit(e), newServe(e), newCheck(e), newCall(e), newAudit(e), newConfig(e), newEval(e), newTools(e), newServers(e), newCapture(e), newMCP(e), newACP(e), newPolicy(e), newApprovals(e), newKeys(e), newHealthcheck(e), newVersion(e))
	root.InitDefaultCompletionCmd()
	return root
}
