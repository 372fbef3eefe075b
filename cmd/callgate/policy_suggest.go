package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/audit/search"

	"github.com/callgate/callgate/configs"

	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/policy/compare"
	"github.com/callgate/callgate/policy/lab"

	"github.com/callgate/callgate/refusal"
)

func newSuggest(e env) *cobra.Command {
	var from logFlags
	var agent string
	var unverified bool
	c := &cobra.Command{
		Use:   "suggest [--log FILE|DIR…]",
		Short: "Print the policy made narrower by how it was used",
		Long: `Print the policy of --config narrowed to what the calls of audit logs needed. An allow row
that no call needed becomes a comment; one wider than its use becomes the exact rows, or
beyond twenty, one row with the narrowest patterns. Deny rows, rows that ask and conditions
stay. Nothing is added or widened. With --agent, rows that others share stay. A call without
recorded arguments (audit.record: digest) needs every row that may have allowed it.

The result is checked first: it loads, passes its tests, is not wider (policy diff), and
decides every call of the logs as before (policy replay). Its head says how many decisions of
how many days it rests on: what happens once a quarter is not in a week's log. Read it
before you serve it.

The logs' chains are verified first. Exit code 0: a policy is printed. 1: a log is not as
written. 2: something does not load, or there is no decision. 3: a check of the result fails.`,
		Example: `  callgate policy suggest --config callgate.yaml --log gate-0 --log gate-1 > policy.next.csv`,
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return suggest(c.Context(), e, from, agent, unverified) },
	}
	from.Add(c)
	c.Flags().StringVar(&agent, "agent", "", "change only rows for this `AGENT` alone")
	c.Flags().BoolVar(&unverified, "unverified", false, "only warn of a broken chain")
	return c
}

func suggest(ctx context.Context, e env, from logFlags, agent string, unverified bool) (err error) {
	config, err := e.Load(from.Config)
	if err != nil {
		return err
	}
	source, err := config.ReadPolicy()
	if err != nil {
		return err
	}
	// The file may have changed since: both sides are by the bytes that were read now.
	present, err := configs.LoadWithPolicy(mainFile(config), source)
	if err != nil {
		return err
	}
	if agent != "" && !present.Agents[agent] {
		return fmt.Errorf("--agent is %q, and no project lists that agent", agent)
	}
	places := from.Logs
	if len(places) == 0 {
		var err error
		if places, err = logFolders(present.DataDir); err != nil {
			return err
		}
	}
	if err := verifyChains(e, places, unverified); err != nil {
		return err
	}
	logs, err := search.Open(places...)
	if err != nil {
		return fmt.Errorf("cannot read the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, logs.Close()) }()
	use := &recordedUse{config: present, uses: lab.NewUses(present.Policy), gateways: map[string]bool{}}
	if err := eachRecord(ctx, e, logs, use.add); err != nil {
		return err
	}
	if use.decisions == 0 {
		return errors.New("the logs have no decision of this policy, so nothing can be said of its use")
	}
	text, counts := use.uses.Suggest(source.Data,
		lab.SuggestOptions{Head: use.head(agent), Since: use.from.UTC().Format(time.DateOnly), Agent: agent})
	next, err := configs.LoadTestedWithPolicy(mainFile(config), policy.Source{File: source.File, Data: text})
	if err != nil {
		return cli.InternalError{Err: fmt.Errorf("the suggestion does not load, so it is not printed: %w", err)}
	}
	if err := checkSuggestion(ctx, e, logs, present, next); err != nil {
		return err
	}
	if _, err := e.Stdout.Write(text); err != nil {
		return err
	}
	fmt.Fprintf(e.Stderr, "allow rows: %d; unused: %d; narrowed: %d\n", counts.Rows, counts.Unused, counts.Narrowed)
	return nil
}

// checkSuggestion compares a suggestion with the present configuration: by their policies, and
// by every decision of the logs.
func checkSuggestion(ctx context.Context, e env, logs *search.Logs, present, next *configs.Config) error {
	failed := func(format string, args ...any) error {
		return cli.InternalError{Err: fmt.Errorf("the suggestion fails its check, so it is not printed: "+format, args...)}
	}
	r, err := lab.Compare(ctx, present.Rules(), next.Rules())
	if err != nil {
		return failed("%w", err)
	}
	if r.Verdict != compare.Narrower && r.Verdict != compare.Equivalent {
		return failed("it is %s", r.Verdict)
	}
	again, err := lab.NewReplay(next.Rules(), present.Rules(), nil, logOf(present, time.Time{}))
	if err != nil {
		return failed("%w", err)
	}
	undecided := ""
	err = eachRecord(ctx, e, logs, func(ctx context.Context, r *audit.Record) error {
		request, known, ok := useOf(present, r)
		if ok && !known && undecided == "" {
			same, err := sameWithoutArguments(ctx, present.Policy, next.Policy, request)
			if err != nil {
				return err
			}
			if !same {
				undecided = r.CallID
			}
		}
		return again.Add(ctx, r)
	})
	switch {
	case err != nil:
		return err
	case undecided != "":
		return failed("the call %s, whose arguments are not known, may be decided otherwise", audit.Escaped(undecided))
	}
	for change, calls := range again.Summary().Changes {
		if calls > 0 {
			g := again.Groups()[0]
			return failed("%d calls of the log are %s; the first is %s", calls, change, audit.Escaped(g.First))
		}
	}
	return nil
}

// sameWithoutArguments reports whether two policies decide a call alike, whatever its arguments
// are. The second is never wider.
func sameWithoutArguments(ctx context.Context, a, b *policy.Policy, r policy.Request) (bool, error) {
	if compare.Same(a, b, r.Agent, r.Workspace, r.Project, r.Tool) {
		return true, nil
	}
	outlook, _, err := a.Foresee(ctx, r)
	return outlook == policy.WillDeny, err
}

// eachRecord reads logs.
func eachRecord(ctx context.Context, e env, logs *search.Logs, add func(context.Context, *audit.Record) error) error {
	s := newLogSearch(e)
	for found, err := range logs.Records(ctx, search.Query{}, search.Options{OnRead: s.Read}) {
		if err != nil {
			if err := s.Failed(err); err != nil {
				return err
			}
			continue
		}
		if err := add(ctx, &found.Record); err != nil {
			return cli.InternalError{Err: err}
		}
	}
	return s.End()
}

// recordedUse gathers the use of a policy by the decisions of logs.
type recordedUse struct {
	config      *configs.Config
	uses        *lab.Uses
	gateways    map[string]bool
	decisions   int
	unknown     int // of them, without all that the policy reads
	from, until time.Time
}

// useOf is the call of a decision, as far as the policy is asked about it, and whether all is known that
// the policy reads of it: the log shows no past. It is not ok where no policy was asked.
func useOf(c *configs.Config, r *audit.Record) (request policy.Request, known, ok bool) {
	if r.Event != audit.Decision || r.Verdict == audit.Text || r.Tool == "" {
		return request, false, false
	}
	if r.Verdict == audit.Refused && (r.Stage == refusal.Request || r.Stage == refusal.Identity || r.Stage == refusal.Parse) {
		return request, false, false
	}
	if _, registered := c.Tools.Lookup(r.Tool); !registered {
		return request, false, false
	}
	request = policy.Request{Agent: r.Agent, Workspace: r.Workspace, Project: r.Project, Tool: r.Tool}
	arguments, missing := recordedArguments(c, r)
	if missing != "" || bytes.Contains(r.Arguments, []byte(`"[redacted]"`)) {
		return request, false, true
	}
	request.Arguments = arguments
	reads, err := c.Policy.Reads(r.Agent, r.Workspace, r.Project, r.Tool)
	return request, err == nil && reads.None(), true
}

// add adds a decision.
func (u *recordedUse) add(ctx context.Context, r *audit.Record) error {
	request, known, ok := useOf(u.config, r)
	if !ok {
		return nil
	}
	u.decisions++
	u.gateways[r.Replica] = true
	if u.from.IsZero() || r.Time.Before(u.from) {
		u.from = r.Time
	}
	if r.Time.After(u.until) {
		u.until = r.Time
	}
	if !known {
		u.unknown++
	}
	return u.uses.Add(ctx, request, known)
}

// head says what a suggestion is made from.
func (u *recordedUse) head(agent string) []string {
	days := int(u.until.Sub(u.from).Hours()/24) + 1
	lines := []string{
		fmt.Sprintf("made from decisions: %d, gateways: %d, days: %d, %s to %s", u.decisions, len(u.gateways), days,
			u.from.UTC().Format(time.DateTime), u.until.UTC().Format(time.DateTime)),
	}
	if u.unknown > 0 {
		lines = append(lines, fmt.Sprintf(
			"decisions without arguments or past that are read: %d; each is taken to need every row that may have allowed it", u.unknown))
	}
	if agent != "" {
		lines = append(lines, "only rows that are for "+agent+" alone were changed")
	}
	return lines
}
