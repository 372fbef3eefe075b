package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/audit/search"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/policy"
)

func newAuditShow(e env) *cobra.Command {
	var from logFlags
	c := &cobra.Command{
		Use:   "show CALL_ID",
		Short: "Explain what became of a call, and why",
		Long: `Explain one call: the stages that it passed, the policy rows that decided, who approved it,
how it ended, what its code means, and what to do next. Its id is in the header
Callgate-Call-Id, and in GET /v1/runs/RUN_ID.

If the log has the call (audit.record: arguments or completion), it is judged again, without
executing anything, to show the message that the model read, the arguments at fault, and the
condition that was not met, with the values that it read.

Exit code 1: the call is not in the log, or a line that may be of it was altered.`,
		Example: `  callgate audit show --log gate-0 --log gate-1 call_BQPJNL6W6O2CNZGMCGR5HGGAJF`,
		Args:    arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] == "" {
				return errors.New("the id of the call is empty")
			}
			logs, config, err := from.Open(e)
			if err != nil {
				return err
			}
			return errors.Join(printStory(c.Context(), e, logs, config, args[0]), logs.Close())
		},
	}
	from.Add(c)
	return c
}

// maxShown bounds the records that are shown of one call.
const maxShown = 1000

func printStory(ctx context.Context, e env, logs *search.Logs, config *configs.Config, id string) error {
	s := newLogSearch(e)
	var found []search.Found
	for f, err := range logs.Records(ctx, search.Query{Call: id}, search.Options{OnRead: s.Read}) {
		if err != nil {
			if err := s.Failed(err); err != nil {
				return err
			}
			continue
		}
		if found = append(found, f); len(found) == maxShown {
			fmt.Fprintf(e.Stderr, "the first %d records are shown\n", maxShown)
			break
		}
	}
	var endings []search.Found
	if q, some := search.Users(id, found); some {
		for f, err := range logs.Records(ctx, q, search.Options{OnRead: s.Read}) {
			if err != nil {
				if err := s.Failed(err); err != nil {
					return err
				}
				continue
			}
			endings = append(endings, f)
		}
	}
	err := s.End()
	if len(found) == 0 {
		fmt.Fprintf(e.Stderr, "no record is of the call %s; each gateway has a log of its own (--log), and old files may have been moved away\n", audit.Escaped(id))
		return cli.ErrRefused
	}
	var today *search.Configuration
	if config != nil {
		today = &search.Configuration{
			Digest:  config.Digest,
			Judge:   func(r *audit.Record) (search.Judged, error) { return judgeAgain(ctx, config, r) },
			Explain: func(r *audit.Record) []string { return explain(ctx, config, r) },
		}
	}
	search.WriteStory(e.Stdout, id, found, endings, today)
	return err
}

// explain says which rows of the policy decide on the call of a record, with their conditions and what
// these read.
func explain(ctx context.Context, config *configs.Config, r *audit.Record) []string {
	request := policy.Request{Agent: r.Agent, Workspace: r.Workspace, Project: r.Project, Tool: r.Tool}
	var missing string
	request.Arguments, missing = recordedArguments(config, r)
	x, err := config.Policy.Explain(ctx, request)
	if err != nil {
		return []string{"it could not be asked: " + err.Error()}
	}
	lines := []string{x.Why}
	if config.Digest != r.ConfigDigest {
		lines[0] = "today's configuration, which has changed since, says: " + x.Why
	}
	if x.Row == nil {
		for _, near := range x.NearMisses[:min(len(x.NearMisses), maxNear)] {
			lines = append(lines, fmt.Sprintf("%s: %s", near.Row, near.Why))
		}
	}
	if missing != "" {
		lines = append(lines, "the arguments are not known: "+missing)
	}
	return lines
}

// maxNear is how many rows are shown that nearly matched.
const maxNear = 3

// judgeAgain judges the call of a record, and executes nothing.
func judgeAgain(ctx context.Context, config *configs.Config, r *audit.Record) (search.Judged, error) {
	completion := []byte(r.Completion)
	if len(completion) == 0 {
		var call struct {
			Tool struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"tool"`
		}
		call.Tool.Name, call.Tool.Arguments = r.Tool, r.Arguments
		var err error
		if completion, err = json.Marshal(call); err != nil {
			return search.Judged{}, err
		}
	}
	kernel, err := app.NewChecker(config)
	if err != nil {
		return search.Judged{}, err
	}
	report := kernel.Check(ctx, gateway.Request{
		Subject: gateway.Subject{Agent: r.Agent, Workspace: r.Workspace, Project: r.Project},
		Inputs:  []gateway.Input{{Completion: completion}},
	})
	return search.Judged{Verdict: audit.Verdict(report.Verdict), Refusal: report.Refusal}, nil
}
