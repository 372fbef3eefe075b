package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/app/completions"
)

func newACP(e env) *cobra.Command {
	var config string
	var s completions.Subject
	var proxy acpProxyFlags
	c := &cobra.Command{
		Use:   "acp [flags] -- COMMAND [ARG…]",
		Short: "Serve one client of the Agent Client Protocol, such as an editor",
		Long:  acpProxyHelp,
		Example: `  callgate acp --config callgate.yaml -- gemini --acp
  callgate acp --unjudged note --env GEMINI_API_KEY -- gemini --acp
  callgate audit verify callgate-data/acp/1/audit.jsonl`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkSubject(s); err != nil {
				return err
			}
			if c.ArgsLenAtDash() != 0 || len(args) == 0 {
				return errors.New("the agent's command is missing: write -- and then the command, as in callgate acp -- gemini --acp")
			}
			return e.serveACPProxy(c.Context(), config, s, proxy, args)
		},
	}
	configFlag(c, &config)
	subjectFlags(c, &s)
	proxy.register(c)
	return c
}
