package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/store"
)

func newStop(e env) *cobra.Command {
	api := &adminAPI{env: e}
	var body admin.StopBody
	var of subject
	var span time.Duration
	var asJSON bool
	c := &cobra.Command{
		Use:   "stop --reason TEXT (--agent A | --tool T | …)",
		Short: "Stop an agent, a tool, a principal, a project, a thread, or everything",
		Long: `Stop calls and requests to models that match all flags, at once: none begins any more. It holds
until callgate resume or for the time of --for, over restarts, and at every gateway that
shares calls or limits on the same Redis. What runs already is listed, not ended. Callers and
models learn that the operator has stopped this, not why. Operators may stop and resume.

Exit code 0: in force at every gateway. 1: refused, or other gateways have not confirmed within
3 seconds (those that have, obey), or cannot be asked, or a name is unknown: the stop is made, and
matches nothing now. 3: the gateway does not answer.`,
		Example: `  callgate stop --agent Analyst --reason "refunds twice"
  callgate stop --tool 'github.*' --for 1h --reason "their token leaked"`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if body.Reason == "" {
				return errors.New("--reason is missing; expected why, in your words: the next operator reads it")
			}
			if err := checkSubject(&of); err != nil {
				return err
			}
			body.Agent, body.Workspace, body.Project = of.Agent, of.Workspace, of.Project
			named := body.Principal != "" || body.Agent != "" || body.Workspace != "" || body.Project != "" || body.Tool != "" ||
				body.Thread != ""
			switch {
			case named == body.Everything:
				return errors.New("found nothing to stop, or --everything beside something; expected --agent, --tool, --principal, --workspace, --project or --thread, alone or together, or --everything")
			case body.Project != "" && body.Workspace == "":
				return fmt.Errorf("--project is %q without its workspace; expected WORKSPACE/PROJECT", body.Project)
			}
			if c.Flags().Changed("for") {
				if span <= 0 {
					return fmt.Errorf("--for is %s; expected a time above zero, such as 1h or 30m", duration.Spell(span))
				}
				body.For = duration.Spell(span)
			}
			if err := api.open(); err != nil {
				return err
			}
			return api.act(c, http.MethodPost, "/v1/stops", body, asJSON)
		},
	}
	c.Flags().StringVar(&of.Agent, "agent", "", "calls for this `AGENT`")
	c.Flags().StringVar(&body.Tool, "tool", "", "calls of this `TOOL`, or of all below github.*")
	c.Flags().StringVar(&body.Principal, "principal", "", "calls of this `PRINCIPAL`")
	c.Flags().StringVar(&of.Workspace, "workspace", "", "calls in this `WORKSPACE`")
	c.Flags().StringVar(&of.Project, "project", "", "calls in this `PROJECT` or WORKSPACE/PROJECT")
	c.Flags().StringVar(&body.Thread, "thread", "", "calls of this `THREAD` and its descendants")
	c.Flags().BoolVar(&body.Everything, "everything", false, "all calls, and all requests to models")
	c.Flags().StringVar(&body.Reason, "reason", "", "why, in `WORDS`, up to 500 characters, for operators only")
	c.Flags().Var((*durationFlag)(&span), "for", "end after this `TIME`, such as 1h")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return api.add(c)
}

func newResume(e env) *cobra.Command {
	api := &adminAPI{env: e}
	var asJSON bool
	c := &cobra.Command{
		Use:   "resume ID",
		Short: "Resume what was stopped",
		Long: `End a stop, by its id in callgate stops: once that is in the audit log and on disk; other
gateways follow within a second. What was refused meanwhile is not sent again.`,
		Example: "  callgate resume stop_BQPJNL6W6O2C",
		Args:    arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := api.open(); err != nil {
				return err
			}
			return api.act(c, http.MethodDelete, "/v1/stops/"+url.PathEscape(args[0]), nil, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return api.add(c)
}

func newStops(e env) *cobra.Command {
	api := &adminAPI{env: e}
	var asJSON bool
	c := &cobra.Command{
		Use:     "stops",
		Short:   "List what operators have stopped",
		Example: "  callgate stops --json | jq -r .id",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := api.open(); err != nil {
				return err
			}
			var answer struct {
				Stops   []json.RawMessage `json:"stops"`
				Problem string            `json:"problem"`
			}
			if err := api.ask(c.Context(), http.MethodGet, "/v1/stops", nil, &answer); err != nil {
				return err
			}
			table := cli.NewTable(e.Stdout, asJSON, "ID", "SINCE", "UNTIL", "BY", "WHAT", "REASON")
			for _, raw := range answer.Stops {
				var s store.Stop
				if err := json.Unmarshal(raw, &s); err != nil {
					return cli.PeerError{Err: err}
				}
				until := "resumed"
				if !s.Until.IsZero() {
					until = s.Until.Local().Format(time.DateTime)
				}
				if err := table.Print(raw, shownText(s.ID), s.Since.Local().Format(time.DateTime), until, cli.FirstLine(s.By),
					cli.FirstLine(s.String()), cli.FirstLine(s.Reason)); err != nil {
					return err
				}
			}
			if answer.Problem != "" {
				fmt.Fprintf(e.Stderr, "%s\n", shownText(answer.Problem))
			}
			return table.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, an object a line")
	return api.add(c)
}

// act stops or resumes, and says what came of it.
func (a *adminAPI) act(c *cobra.Command, method, path string, body any, asJSON bool) error {
	var raw json.RawMessage
	if err := a.ask(c.Context(), method, path, body, &raw); err != nil {
		return err
	}
	var answer admin.StopAnswer
	if err := json.Unmarshal(raw, &answer); err != nil {
		return cli.PeerError{Err: err}
	}
	if asJSON {
		fmt.Fprintf(a.Stdout, "%s\n", raw)
	} else {
		a.writeAct(&answer, method == http.MethodPost)
	}
	if len(answer.Missing) > 0 || isUnknownElsewhere(&answer) || len(answer.Unknown) > 0 {
		return cli.ErrRefused
	}
	return nil
}

// isUnknownElsewhere reports whether there may be other gateways, of which nothing is known.
func isUnknownElsewhere(answer *admin.StopAnswer) bool {
	return answer.Scope != admin.ScopeAlone && len(answer.Confirmed)+len(answer.Missing) == 0
}

func (a *adminAPI) writeAct(answer *admin.StopAnswer, stopped bool) {
	word, place := "resumed", "ended   "
	if stopped {
		word, place = "stopped", "in force"
	}
	if len(answer.Unknown) > 0 {
		word = "recorded, and matches nothing now:"
	}
	fmt.Fprintf(a.Stdout, "%s: %s %s\n", shownText(answer.Stop.ID), word, shownText(answer.Stop.String()))
	where, n := "at this gateway alone", len(answer.Confirmed)
	switch {
	case isUnknownElsewhere(answer):
		where = "at this gateway; of the others nothing is known"
	case answer.Scope != admin.ScopeAlone:
		where = fmt.Sprintf("confirmed by %d of %d gateways", n, n+len(answer.Missing))
	}
	fmt.Fprintf(a.Stdout, "  %s  %s\n", place, where)
	for _, g := range answer.Missing {
		fmt.Fprintf(a.Stdout, "  missing   %s has not confirmed: see its log and its /readyz\n",
			strings.TrimSpace(shownText(g.Node)+" "+shownText(g.Replica)))
	}
	for _, r := range answer.InFlight {
		fmt.Fprintf(a.Stdout, "  running   %s %s, %s, for %s: it is not ended\n", shownText(r.CallID), shownText(r.Tool),
			shownText(r.State), duration.Words(time.Duration(r.AgeMillis)*time.Millisecond, 2))
	}
	for _, p := range answer.Problems {
		fmt.Fprintf(a.Stdout, "  note      %s\n", shownText(p))
	}
}
