package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/internal/cli"
)

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
func newVoteCommand(e env, yes bool) *cobra.Command {
	api := &adminAPI{env: e}
	digest := digestFlag{printedBy: "callgate approvals show"}
	var reason, standing string
	var asJSON bool
	c := &cobra.Command{
		Use:   "deny ID --reason TEXT",
		Short: "Say no: the call does not run",
		Long: `Deny a call. The model reads your reason. The same call is then refused without asking
again, for at most an hour.`,
		Example: `  callgate approvals deny call_BQPJNL6W6O2CNZGMCGR5HGGAJF --reason "the invoice is paid already"`,
		Args:    arguments(1, 1),
	}
	if yes {
		c.Use, c.Short = "approve ID", "Say yes: the call that is shown may run"
		c.Long = `Show a call, ask on the terminal, and approve exactly what was shown: other arguments or a
changed tool need another approval. Where standard input is no terminal, --digest says what
you have seen.

--remember approves later calls too, within what the rule permits: same (the same arguments),
thread (the tool in this thread) or tool.`
		c.Example = `  callgate approvals approve call_BQPJNL6W6O2CNZGMCGR5HGGAJF --remember same=2h`
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		ballot := vote{Vote: "no", Digest: digest.digest, Reason: reason}
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
		if yes && digest.digest == "" && !e.IsTerminal() {
			return errors.New(
				"--digest is needed where standard input is no terminal: it says which call you have seen (callgate approvals show)")
		}
		if err := api.open(); err != nil {
			return err
		}
		return api.cast(c.Context(), args[0], ballot, asJSON)
	}
	c.Flags().StringVar(&reason, "reason", "", "why, in `WORDS`, up to 500 characters")
	c.Flags().Var(&digest, "digest", "the `DIGEST` that show printed")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	if yes {
		c.Flags().StringVar(&standing, "remember", "", "approve later calls too: `SCOPE=TIME`")
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
			return cli.PeerError{Err: errors.New("the answer has no digest")}
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
