package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/violations"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/refusal"
)

func newPolicy(e env) *cobra.Command {
	return group("policy", "Explain, test and narrow the policy, and compare and try another", newExplain(e), newModel(e), newPolicyTest(e),
		newPolicyLint(e), newDiff(e), newSuggest(e), newReplay(e))
}

func newModel(e env) *cobra.Command {
	return &cobra.Command{
		Use:   "model",
		Short: "Print the casbin model that decides",
		Long: `Print the casbin model by which the rows of the policy decide, out of those that an index
selects for agent, domain and tool. covers matches patterns (* and a last part *). condition
evaluates a row's CEL expression; it also holds where the condition of a deny row fails. A
row that asks is an allow row to casbin.`,
		Args: cobra.NoArgs,
		Run:  func(*cobra.Command, []string) { fmt.Fprint(e.Stdout, policy.Model) },
	}
}

func newExplain(e env) *cobra.Command {
	var agent, tool, project, arguments, call string
	var logs, after, labels []string
	var asJSON bool
	c := e.WithUntested(&cobra.Command{
		Use:   "explain --agent A [--tool T] [--project W/P] [--arguments JSON] | --call CALL_ID",
		Short: "Print which row of the policy decides, and why",
		Long: `Say whether an agent may use a tool, which row of the policy decides, and which rows nearly
matched and why not. The arguments are checked by the tool's schema first. Without
--arguments, conditions that read one are not met; without --after and --label, conditions
about the past are not decided. Without --tool, every tool is listed.

--call takes agent, project, tool and arguments from a call of the audit log (arguments only
with audit.record: arguments or completion), and also prints what its conditions saw of the
past, and the calls that added labels. The current configuration decides.

--json prints what POST /v1/policy/explain of the admin API answers, with saw, what was read
of the past; for every tool, an object a line.

Exit code 0: allowed, also if people must approve. 1: denied.`,
		Example: `  callgate policy explain --agent Analyst --tool mail.send --arguments '{"to":"eve@evil.example"}' \
      --after 'crm.read {"id":7}' --label untrusted
  callgate policy explain --call call_BQPJNL6W6O2CNZGMCGR5HGGAJF`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, loaded *configs.Config, _ []string) error {
		if tool == "" && arguments != "" {
			return errors.New("--arguments are of a call: --tool is needed too")
		}
		if tool == "" && len(after)+len(labels) > 0 {
			return errors.New("--after and --label are of the thread of a call: --tool is needed too")
		}
		var request policy.Request
		var saw []string // with what made each
		var err error
		withArguments := arguments != ""
		if call != "" {
			request, withArguments, saw, err = recordedRequest(ctx, e, loaded, logs, call)
		} else {
			request, err = explainRequest(loaded, agent, tool, project, arguments)
		}
		if err != nil {
			return err
		}
		var madeBy func(saw string) []string
		if len(after)+len(labels) > 0 {
			if madeBy, err = explainAfter(loaded, &request, after, labels); err != nil {
				return err
			}
		}
		readOfPast := func() []string { // once the policy was asked
			if madeBy != nil {
				for _, value := range request.Past.Saw() {
					saw = append(saw, with(value, madeBy(value)))
				}
			}
			return saw
		}
		explainUnknown(e, loaded, request)
		switch {
		case request.Tool == "":
			return explainAll(ctx, e, loaded, request, asJSON)
		case asJSON:
			return explainJSON(ctx, e, loaded, request, withArguments, readOfPast)
		}
		explanation, err := loaded.Policy.Explain(ctx, request)
		if err != nil {
			return cli.InternalError{Err: err}
		}
		printExplanation(e, request, explanation)
		saw = readOfPast()
		if len(saw) > 0 {
			fmt.Fprintln(e.Stdout, "What was read of the past:")
		}
		for _, value := range saw {
			fmt.Fprintf(e.Stdout, "  %s\n", value)
		}
		if !explanation.Allowed {
			return cli.ErrRefused
		}
		return nil
	})
	c.Flags().StringVar(&agent, "agent", "", "the `AGENT`")
	c.Flags().StringVar(&tool, "tool", "", "the `TOOL` (default: all)")
	c.Flags().StringVar(&project, "project", "", "the `WORKSPACE/PROJECT` (default: the configuration's)")
	c.Flags().StringVar(&arguments, "arguments", "", "the arguments, as a `JSON` object")
	c.Flags().StringArrayVar(&after, "after", nil,
		"a `CALL` that the thread made before, ended with a result: 'TOOL ARGUMENTS' (repeatable, in order)")
	c.Flags().StringArrayVar(&labels, "label", nil, "a `LABEL` of the thread (repeatable)")
	c.Flags().StringVar(&call, "call", "", "explain the call with this `ID`")
	c.Flags().StringArrayVar(&logs, "log", nil, "the log in this `FILE|FOLDER` (repeatable; default: data_dir)")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.MarkFlagsOneRequired("agent", "call")
	for _, other := range []string{"agent", "tool", "project", "arguments", "after", "label"} {
		c.MarkFlagsMutuallyExclusive("call", other)
	}
	c.MarkFlagsMutuallyExclusive("log", "agent")
	return c
}

func explainRequest(c *configs.Config, agent, tool, project, arguments string) (policy.Request, error) {
	r, err := requestIn(c, agent, project)
	if err != nil {
		return r, err
	}
	r.Tool = tool
	if arguments == "" {
		return r, nil
	}
	entry, _ := c.Tools.Lookup(tool)
	r.Arguments, err = violations.ReadArguments(entry, []byte(arguments), c.Output.MaxDepth)
	var refused *refusal.Error
	switch {
	case errors.As(err, &refused):
		return r, fmt.Errorf("--arguments: %s A call with them is refused before the policy is asked", refused.Detail())
	case err != nil:
		return r, fmt.Errorf("--arguments: %w", err)
	}
	return r, nil
}

// with is a value of the past with what made it.
func with(value string, made []string) string {
	if len(made) == 0 {
		return value
	}
	return value + ": " + strings.Join(made, ", ")
}

// explainAfter gives a request what its thread has done before.
func explainAfter(c *configs.Config, r *policy.Request, after, labels []string) (madeBy func(saw string) []string, err error) {
	var steps []gateway.Step
	for _, label := range labels {
		if !slices.Contains(c.Threads.Labels, label) {
			expected := "one of threads.labels in the main file: " + strings.Join(c.Threads.Labels, ", ")
			if len(c.Threads.Labels) == 0 {
				expected = "a label of threads.labels in the main file, which lists none"
			}
			return nil, fmt.Errorf("--label is %s; expected %s", parser.Quote(label), expected)
		}
		steps = append(steps, gateway.Step{Labels: []string{label}, Name: "--label"})
	}
	for i, call := range after {
		tool, arguments, _ := strings.Cut(call, " ")
		entry, known := c.Tools.Lookup(tool)
		if !known {
			return nil, fmt.Errorf("--after names the tool %s, which is not registered; expected 'TOOL ARGUMENTS', as 'crm.read {\"id\":7}'", parser.Quote(tool))
		}
		if arguments = strings.TrimSpace(arguments); arguments == "" {
			arguments = "{}"
		}
		values, err := violations.ReadArguments(entry, []byte(arguments), c.Output.MaxDepth)
		var refused *refusal.Error
		switch {
		case errors.As(err, &refused):
			return nil, fmt.Errorf("--after %s: %s A call that is refused leaves nothing behind", parser.Quote(tool), refused.Detail())
		case err != nil:
			return nil, fmt.Errorf("--after %s: %w", parser.Quote(tool), err)
		}
		steps = append(steps, gateway.Step{Tool: tool, Arguments: values, Ended: true, Name: fmt.Sprintf("step %d (%s)", i+1, tool)})
	}
	judge, err := c.DryRun()
	if err == nil {
		madeBy, err = judge.After(r, steps)
	}
	if err != nil {
		return nil, cli.InternalError{Err: err}
	}
	return madeBy, nil
}

// explainUnknown says which names of a request the configuration does not have: the policy decides
// all the same, and a mistyped name is denied like any other.
func explainUnknown(e env, c *configs.Config, r policy.Request) {
	if r.Tool != "" {
		if _, known := c.Tools.Lookup(r.Tool); !known {
			fmt.Fprintf(e.Stderr, "note: the configuration has no tool %s\n", parser.Quote(r.Tool))
		}
	}
	if !c.Agents[r.Agent] {
		fmt.Fprintf(e.Stderr, "note: no project and no principal names the agent %s\n", parser.Quote(r.Agent))
	}
	if _, known := c.Workspaces[r.Workspace].Projects[r.Project]; !known {
		fmt.Fprintf(e.Stderr, "note: the configuration has no project %s\n", parser.Quote(r.Workspace+"/"+r.Project))
	}
}

func printExplanation(e env, r policy.Request, x policy.Explanation) {
	verdict := "denied: %s may not use %s in %s/%s\n"
	switch {
	case len(x.Asks) > 0:
		verdict = "asks " + strings.Join(x.Asks, ", ") + ": %s may use %s in %s/%s once people have approved the call\n"
	case x.Allowed:
		verdict = "allowed: %s may use %s in %s/%s\n"
	}
	fmt.Fprintf(e.Stdout, verdict, r.Agent, r.Tool, r.Workspace, r.Project)
	fmt.Fprintf(e.Stdout, "%s\n", x.Why)
	if len(x.NearMisses) > 0 {
		fmt.Fprintln(e.Stdout, "Other rows:")
	}
	for _, n := range x.NearMisses {
		fmt.Fprintf(e.Stdout, "  %s\n      %s\n", n.Row, n.Why)
	}
	if x.Omitted > 0 {
		fmt.Fprintf(e.Stdout, "  and %d more\n", x.Omitted)
	}
}
