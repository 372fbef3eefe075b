package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/audit/search"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/text"
	"github.com/callgate/callgate/policy/lab"
)

// replayFlags are the flags of policy replay.
type replayFlags struct {
	logs                         logFlags
	policy                       fileFlag // in place of the configuration's
	baseline                     fileFlag // or a digest
	since, until, failOn         string
	unverified, asJSON, coverage bool
	groups                       int
}

// replayFails says, for each value of --fail-on, at which changes a replay fails.
var replayFails = map[string][]lab.Change{
	"refused": {lab.NewlyRefused},
	"asks":    {lab.NewlyAsks},
	"allowed": {lab.NewlyAllowed},
	"any":     {lab.NewlyRefused, lab.NewlyAsks, lab.NewlyAllowed},
	"none":    nil,
}

func newReplay(e env) *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use:   "replay [--log FILE|DIR…]",
		Short: "Judge the calls of audit logs again, by another configuration",
		Long: `Judge the decisions of audit logs again by --config, with --policy by another policy in it, and
list what would be newly refused, asked of people, or allowed: a line for each agent, tool
and reason, with the row that decides and the first call. Nothing is executed.

The comparison is with the log, or with --baseline with another configuration, so that what
changed since does not count.

Without arguments in the log (audit.record: digest), what does not depend on them is decided;
the rest is counted first, as undecided, with the reason. Whether such calls passed schema and
boundaries is taken from the log, unless data_dir/configs shows that these have changed: then
it is undecided. Conditions about the past are answered by the log's calls, also before
--since; where those are incomplete, the call is not judged.

The caller, the rate and the state of tools are not judged again: a call refused for them
counts as allowed before. Paths are judged by this machine's files.

The logs' chains are verified first. Exit code 0: nothing of --fail-on was found. 1: it was, or
a log is not as written. 2: something does not load.`,
		Example: `  callgate policy replay --policy policy.next.csv
  callgate policy replay --config next/callgate.yaml --baseline callgate.yaml --log gate-0 --log gate-1 --since 7d`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runReplay(c.Context(), e, f) },
	}
	f.logs.Add(c)
	c.Flags().Var(&f.policy, "policy", "judge by the policy in `FILE` (.csv)")
	c.Flags().Var(&f.baseline, "baseline", "compare with the configuration or policy in `FILE`, or with a digest, not with the log")
	c.Flags().StringVar(&f.since, "since", "", "decisions of this `TIME` and later: RFC 3339, or an age such as 7d")
	c.Flags().StringVar(&f.until, "until", "", "decisions before this `TIME`")
	c.Flags().StringVar(&f.failOn, "fail-on", "any", "fail on this `CHANGE`: refused, asks, allowed, any or none")
	c.Flags().BoolVar(&f.unverified, "unverified", false, "only warn of a broken chain")
	c.Flags().BoolVar(&f.coverage, "coverage", false, "also print how often each row decided")
	c.Flags().IntVar(&f.groups, "limit", defaultLimit, "print at most `N` changes; 0 is all (default with --json)")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON, an object a line; the last is the summary")
	_ = c.RegisterFlagCompletionFunc("fail-on",
		cobra.FixedCompletions(slices.Sorted(maps.Keys(replayFails)), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func runReplay(ctx context.Context, e env, f replayFlags) error {
	fails, known := replayFails[f.failOn]
	if !known {
		return fmt.Errorf("--fail-on is %q; expected refused, asks, allowed, any or none", f.failOn)
	}
	if f.groups < 0 {
		return fmt.Errorf("--limit is %d; expected 0 or more", f.groups)
	}
	var q search.Query
	if err := readQuery(&q, "", "", f.since, f.until); err != nil {
		return err
	}
	file, err := e.Locate(f.logs.Config)
	if err != nil {
		return err
	}
	now := file
	if f.policy != "" {
		if now = string(f.policy); !strings.HasSuffix(now, ".csv") {
			return fmt.Errorf("--policy is %q; expected a policy, a file that ends in .csv", now)
		}
	}
	config, err := e.Warned(loadSide(now, file))
	if err != nil {
		return err
	}
	var baseline *configs.Config
	if f.baseline != "" {
		if baseline, err = loadSide(string(f.baseline), file); err != nil {
			return err
		}
	}
	r, err := lab.NewReplay(config.Rules(), baseline.Rules(), keptConfigs(e, config), logOf(config, q.Since))
	if err != nil {
		return cli.InternalError{Err: err}
	}
	places := f.logs.Logs
	if len(places) == 0 {
		var err error
		if places, err = logFolders(config.DataDir); err != nil {
			return err
		}
	}
	if err := verifyChains(e, places, f.unverified); err != nil {
		return err
	}
	if err := replayLogs(ctx, e, r, places, q); err != nil {
		return err
	}
	if err := printReplay(e, r, config, f); err != nil {
		return err
	}
	if slices.ContainsFunc(fails, func(c lab.Change) bool { return r.Summary().Changes[c] > 0 }) {
		return cli.ErrRefused
	}
	return nil
}

// logOf is what a configuration says of the log that was written under it.
func logOf(c *configs.Config, since time.Time) lab.Log {
	return lab.Log{Since: since, Anonymous: c.Auth.Mode == configs.AuthNone, Idle: c.Threads.Idle, KeepLabels: c.Threads.KeepLabels}
}

// keptConfigs returns the configurations that are kept in the data folder of one, by digest; nil
// for one that is not, or does not load any more, which is said.
func keptConfigs(e env, c *configs.Config) func(digest string) *gateway.Config {
	return func(digest string) *gateway.Config {
		kept, err := configs.LoadKept(c.DataDir, digest)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(e.Stderr, "note: %v\n", err)
		}
		return kept.Rules()
	}
}

// verifyChains verifies the chains of logs, and says what is wrong with them. A log that is not as it
// was written is an error, unless the caller continues all the same. An incomplete last line is
// none: a gateway may be writing it.
func verifyChains(e env, places []string, goOn bool) error {
	var files []string
	for _, place := range places {
		within, err := filepath.Glob(filepath.Join(place, "audit*.jsonl"))
		if err != nil || len(within) == 0 {
			within = []string{place}
		}
		files = append(files, within...)
	}
	chains, err := audit.Verifier{}.Verify(files...)
	if err != nil {
		return fmt.Errorf("cannot verify the audit log: %w", err)
	}
	broken := false
	for _, chain := range chains {
		if chain.TruncatedBytes > 0 {
			fmt.Fprintf(e.Stderr, "note: %s ends in %d bytes of an incomplete line, which are left out: a write that was cut short or is under way\n",
				chain.Files[len(chain.Files)-1], chain.TruncatedBytes)
		}
		switch {
		case chain.Corruption == nil:
		case goOn:
			fmt.Fprintf(e.Stderr, "note: %v\nthe log is not as it was written; records that stand twice are counted twice, and those that are missing are not counted\n", chain.Corruption)
		default:
			broken = true
			fmt.Fprintf(e.Stderr, "%v\nthe log is not as it was written; --unverified judges what can be read\n", chain.Corruption)
		}
	}
	if broken {
		return cli.ErrRefused
	}
	return nil
}

// replayLogs judges the decisions of logs.
func replayLogs(ctx context.Context, e env, r *lab.Replay, places []string, q search.Query) (err error) {
	logs, err := search.Open(places...)
	if err != nil {
		return fmt.Errorf("cannot read the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, logs.Close()) }()
	if r.OnThreads() {
		q.Since = time.Time{} // those before are what was done before
	}
	s := newLogSearch(e)
	began, faults := map[int]bool{}, false
	for found, err := range logs.Records(ctx, q, search.Options{OnRead: s.Read}) {
		if err != nil {
			if err := s.Failed(err); err != nil {
				return err
			}
			faults = true
			continue
		}
		if faults || !began[found.Log] && found.Seq > 1 {
			r.Lose(found.Time)
		}
		began[found.Log], faults = true, false
		if err := r.Add(ctx, &found.Record); err != nil {
			return cli.InternalError{Err: err}
		}
	}
	return s.End()
}

// changeLine is a line of JSON.
type changeLine struct {
	Kind string `json:"kind"`
	lab.ReplayGroup
}

// rowLine says how often a row decided.
type rowLine struct {
	Kind  string `json:"kind"`
	Row   string `json:"row"`
	Calls int    `json:"calls"`
}

// summaryLine is the last line of JSON.
type summaryLine struct {
	Kind string `json:"kind"`
	lab.ReplaySummary
	From   string `json:"from"`
	Until  string `json:"until"`
	Digest string `json:"config_digest"`
}

func printReplay(e env, r *lab.Replay, config *configs.Config, f replayFlags) error {
	if f.asJSON {
		return replayJSON(e, r, config, f.coverage)
	}
	replayHead(e, r.Summary())
	if err := replayChanges(e, r, f.groups); err != nil {
		return err
	}
	if f.coverage {
		return replayRows(e, r, config)
	}
	return nil
}

// replayChanges lists the changes, as many as the limit; 0 is all.
func replayChanges(e env, r *lab.Replay, limit int) error {
	table := cli.NewTable(e.Stdout, false, "CHANGE", "CALLS", "AGENT", "PROJECT", "TOOL", "BECAUSE OF", "FIRST CALL")
	groups := r.Groups()
	for i, g := range groups {
		if limit > 0 && i == limit {
			break
		}
		because := g.Rows
		if g.After != "" {
			because = strings.TrimSpace(string(g.After) + " " + g.Rows)
		}
		if err := table.Print(nil, strings.ReplaceAll(string(g.Change), "_", " "), fmt.Sprint(g.Calls), g.Agent, g.Workspace+"/"+g.Project,
			g.Tool, because, g.First); err != nil {
			return err
		}
	}
	if len(groups) > 0 {
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if limit > 0 && len(groups) > limit {
		fmt.Fprintf(e.Stdout, "and %d lines more: policy replay --limit 0 prints all\n", len(groups)-limit)
	}
	return nil
}

// replayHead says how much was judged: the undecided share first, for without it all else would
// read as if nothing had changed.
func replayHead(e env, s lab.ReplaySummary) {
	fmt.Fprint(e.Stdout, text.Count(s.Decisions, "decision"))
	if !s.From.IsZero() {
		fmt.Fprintf(e.Stdout, ", %s to %s", s.From.UTC().Format(time.DateTime), s.Until.UTC().Format(time.DateTime))
	}
	fmt.Fprintf(e.Stdout, ", gateways: %d; %d judged again, %d not\n", s.Gateways, s.Decided, s.Decisions-s.Decided)
	if s.OnThreads {
		fmt.Fprintln(e.Stdout, "  each on what its thread and its caller had done when it was made, not on what they would have done")
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Undecided)) {
		fmt.Fprintf(e.Stdout, "  not judged %d: %s\n", s.Undecided[reason], reason)
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Outside)) {
		fmt.Fprintf(e.Stdout, "  left out %d: %s\n", s.Outside[reason], reason)
	}
	if s.Assumed > 0 {
		fmt.Fprintf(e.Stdout, "  %d without arguments, as if schemas and boundaries had not changed\n", s.Assumed)
		if s.NotKept > 0 {
			fmt.Fprintf(e.Stdout, "    configurations that judged calls and are not kept, or were removed: %d\n", s.NotKept)
		}
	}
	for _, change := range lab.Changes() {
		fmt.Fprintf(e.Stdout, "%-14s %d\n", strings.ReplaceAll(string(change), "_", " "), s.Changes[change])
	}
	if s.MoreGroups > 0 {
		fmt.Fprintf(e.Stdout, "%d calls are of more than %d kinds of changes, and have no line\n", s.MoreGroups, lab.MaxGroups)
	}
}

// replayRows prints how often each row of the policy decided.
func replayRows(e env, r *lab.Replay, config *configs.Config) error {
	counts := r.Rows()
	table := cli.NewTable(e.Stdout, false, "DECIDED", "ROW")
	for _, row := range config.Policy.Rows() {
		times := "never"
		if n := counts[row.Place()]; n > 0 {
			times = fmt.Sprint(n)
		}
		if err := table.Print(nil, times, row.String()); err != nil {
			return err
		}
	}
	return table.Flush()
}

func replayJSON(e env, r *lab.Replay, config *configs.Config, coverage bool) error {
	table := cli.NewTable(e.Stdout, true)
	for _, g := range r.Groups() {
		if err := table.Print(changeLine{"change", g}); err != nil {
			return err
		}
	}
	if coverage {
		counts := r.Rows()
		for _, row := range config.Policy.Rows() {
			if err := table.Print(rowLine{"row", row.Place(), counts[row.Place()]}); err != nil {
				return err
			}
		}
	}
	s := r.Summary()
	if err := table.Print(summaryLine{"summary", s, stamp(s.From), stamp(s.Until), config.Digest}); err != nil {
		return err
	}
	return table.Flush()
}

// stamp writes a time; "" for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
