package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/cmd/callgate/internal/cmdenv"
	"github.com/callgate/callgate/internal/cli"
)

func newApprovals(e cmdenv.Env) *cobra.Command {
	parent := cmdenv.Group("approvals", "Decide the calls that wait for a person's approval",
		newApprovalsList(e), newApprovalsShow(e), newVoteCommand(e, true), newVoteCommand(e, false), newGrants(e), newRevoke(e))
	parent.Long = `A row of the policy with the effect ask:RULE has people asked before a call runs.
These commands ask the admin API of a running gateway, with your own key: that of a
principal with approves: [RULE], or of an operator. Nobody may approve a call of
their own. See docs/approvals.md.

The exit code is 0 when it is done, 1 when the gateway refuses (the approval has
ended, or is not yours to decide), 2 for a mistake in the command, 3 when the
gateway does not answer.`
	parent.Example = `  callgate approvals list
  callgate approvals show call_BQPJNL6W6O2CNZGMCGR5HGGAJF
  callgate approvals approve call_BQPJNL6W6O2CNZGMCGR5HGGAJF --remember same=2h
  callgate approvals deny call_BQPJNL6W6O2CNZGMCGR5HGGAJF --reason "the invoice is paid already"`
	return parent
}

// approvalLine is what a list shows of an approval.
type approvalLine struct {
	ID    string    `json:"id"`
	State string    `json:"state"`
	Rules []string  `json:"rules"`
	Tool  string    `json:"tool"`
	Agent string    `json:"agent"`
	Until time.Time `json:"until"`
}

func newApprovalsList(e cmdenv.Env) *cobra.Command {
	api := &adminAPI{Env: e}
	var waiting, asJSON bool
	var rule string
	c := &cobra.Command{
		Use:     "list",
		Short:   "List approvals, those that you may decide first",
		Example: "  callgate approvals list --waiting\n  callgate approvals list --json | jq -r .id",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			query := url.Values{}
			if waiting {
				query.Set("state", "waiting")
			}
			if rule != "" {
				query.Set("rule", rule)
			}
			table := cli.NewTable(e.Stdout, asJSON, "ID", "STATE", "RULES", "TOOL", "AGENT", "UNTIL")
			err := api.pages(c.Context(), "/v1/approvals", "approvals", query, func(raw json.RawMessage) error {
				var a approvalLine
				if err := json.Unmarshal(raw, &a); err != nil {
					return cli.InternalError{Err: err}
				}
				return table.Print(raw, shownText(a.ID), shownText(a.State), shownText(strings.Join(a.Rules, ",")), cli.FirstLine(a.Tool), cli.FirstLine(a.Agent),
					a.Until.Local().Format(time.DateTime))
			})
			if err != nil {
				return err
			}
			return table.Flush()
		},
	}
	c.Flags().BoolVar(&waiting, "waiting", false, "only those that wait")
	c.Flags().StringVar(&rule, "rule", "", "only those of this `RULE`")
	c.Flags().BoolVar(&asJSON, "json", false, "print an object a line, as the gateway gives it")
	return api.add(c)
}

// pages reads every page of a list.
func (a *adminAPI) pages(ctx context.Context, path, member string, query url.Values, each func(json.RawMessage) error) error {
	if err := a.open(); err != nil {
		return err
	}
	query.Set("limit", strconv.Itoa(pageSize))
	for {
		var page map[string]json.RawMessage
		if err := a.ask(ctx, http.MethodGet, path+"?"+query.Encode(), nil, &page); err != nil {
			return err
		}
		var items []json.RawMessage
		if err := json.Unmarshal(page[member], &items); err != nil {
			return cli.InternalError{Err: fmt.Errorf("the answer has no list %s", member)}
		}
		for _, item := range items {
			if err := each(item); err != nil {
				return err
			}
		}
		next := strings.Trim(string(page["next"]), `"`) // a text or a number
		if next == "" || next == "null" || next == query.Get("after") || len(items) == 0 {
			return nil
		}
		query.Set("after", next)
	}
}

// pageSize is how many entries one request asks for.
const pageSize = 200

// firstDetails are the members of an approval that are shown first.
var firstDetails = []string{
	"id", "url", "state", "rules", "hint", "tool", "version", "effect", "description", "arguments", "agent", "workspace", "project", "principal", "user",
	"thread", "opened", "until", "rows", "votes", "ran", "may_vote", "why_not", "digest",
}

func newApprovalsShow(e cmdenv.Env) *cobra.Command {
	api := &adminAPI{Env: e}
	var asJSON bool
	c := &cobra.Command{
		Use:   "show ID",
		Short: "Show an approval: the call with its arguments, who asked, and the votes",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := api.open(); err != nil {
				return err
			}
			shown, err := api.approval(c.Context(), args[0])
			if err != nil {
				return err
			}
			return api.print(shown, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, as the gateway gives it")
	return api.add(c)
}

func (a *adminAPI) approval(ctx context.Context, id string) (shown map[string]json.RawMessage, err error) {
	return shown, a.ask(ctx, http.MethodGet, approvalPath(id), nil, &shown)
}

func approvalPath(id string) string { return "/v1/approvals/" + url.PathEscape(id) }

// print shows an answer.
func (a *adminAPI) print(answer map[string]json.RawMessage, asJSON bool) error {
	if !asJSON {
		writeDetails(a.Stdout, answer, firstDetails...)
		return nil
	}
	line, err := cli.JSONLine(answer)
	if err == nil {
		_, err = a.Stdout.Write(line)
	}
	return err
}

// vote is the body of a vote.
type vote struct {
	Vote     string    `json:"vote"` // yes or no
	Digest   string    `json:"digest"`
	Reason   string    `json:"reason,omitempty"`
	Remember *remember `json:"remember,omitempty"`
}

// remember is for which calls a yes stands, and for how long.
type remember struct {
	Scope string `json:"scope"`
	For   string `json:"for"`
}

// newVoteCommand is approve or deny.
func newVoteCommand(e cmdenv.Env, yes bool) *cobra.Command {
	api := &adminAPI{Env: e}
	var digest cmdenv.DigestFlag
	var reason, standing string
	var asJSON bool
	c := &cobra.Command{
		Use:   "deny ID --reason TEXT",
		Short: "Say no: the call does not run",
		Long: `Say no to a call. The model reads your reason. The same call is then refused without
asking again, for at most an hour.`,
		Example: `  callgate approvals deny call_BQPJNL6W6O2CNZGMCGR5HGGAJF --reason "the invoice is paid already"`,
		Args:    cobra.ExactArgs(1),
	}
	if yes {
		c.Use, c.Short = "approve ID", "Say yes: the call that is shown may run"
		c.Long = `Show a call, ask on the terminal, and say yes to exactly what was shown: a call with
other arguments, or of a tool whose definition has changed, needs another yes. Where
standard input is no terminal, --digest says what you have seen (see show).

--remember lets the yes stand, where the rule permits that: same for calls with the
same arguments, thread for all calls of the tool in this thread, tool for all of them.`
		c.Example = `  callgate approvals approve call_BQPJNL6W6O2CNZGMCGR5HGGAJF
  callgate approvals approve call_BQPJNL6W6O2CNZGMCGR5HGGAJF --remember same=2h
  callgate approvals approve call_BQPJNL6W6O2CNZGMCGR5HGGAJF --digest 5f1c…`
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		ballot := vote{Vote: "no", Digest: string(digest), Reason: reason}
		if yes {
			ballot.Vote = "yes"
		} else if reason == "" {
			return errors.New("--reason is empty; expected why, in your words: the model reads it")
		}
		if standing != "" {
			scope, span, found := strings.Cut(standing, "=")
			if !found || scope == "" || span == "" {
				return fmt.Errorf("--remember is %q; expected SCOPE=TIME, such as same=2h", standing)
			}
			ballot.Remember = &remember{scope, span}
		}
		if yes && digest == "" && !e.IsTerminal() {
			return errors.New("--digest is needed where standard input is no terminal: it says which call you have seen (callgate approvals show)")
		}
		if err := api.open(); err != nil {
			return err
		}
		return api.cast(c.Context(), args[0], ballot, asJSON)
	}
	c.Flags().StringVar(&reason, "reason", "", "why, in your `WORDS`, up to 500 characters")
	c.Flags().Var(&digest, "digest", "the `DIGEST` of the call that you have seen")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, as the gateway gives it")
	if yes {
		c.Flags().StringVar(&standing, "remember", "", "let the yes stand, as `SCOPE=TIME`")
	}
	return api.add(c)
}

// cast shows the approval unless the digest says which one was seen, asks, and votes.
func (a *adminAPI) cast(ctx context.Context, id string, ballot vote, asJSON bool) error {
	if ballot.Digest == "" {
		shown, err := a.approval(ctx, id)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(shown["digest"], &ballot.Digest); err != nil || ballot.Digest == "" {
			return cli.InternalError{Err: errors.New("the answer has no digest")}
		}
		if ballot.Vote == "yes" {
			writeDetails(a.Stderr, shown, firstDetails...)
			if !a.Confirm("Approve this call? [y/N] ") {
				fmt.Fprintln(a.Stderr, "nothing was decided")
				return cli.ErrRefused
			}
		}
	}
	var answer map[string]json.RawMessage
	if err := a.ask(ctx, http.MethodPost, approvalPath(id), ballot, &answer); err != nil {
		return err
	}
	if asJSON {
		return a.print(answer, true)
	}
	fmt.Fprintf(a.Stdout, "%s: %s\n", shownText(id), shownValue(answer["state"]))
	return nil
}
