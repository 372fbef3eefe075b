package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/audit/search"

	"github.com/callgate/callgate/configs"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/policy/compare"
	"github.com/callgate/callgate/policy/lab"
)

func newDiff(e env) *cobra.Command {
	var config fileFlag
	var failOn string
	var asJSON bool
	c := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Say how two policies differ: which calls pass under one and not under the other",
		Long: `Compare what two configurations let agents do. OLD and NEW are main files, .csv files (that
policy in the configuration of --config), or digests of configurations that serve has kept in
data_dir.

The verdict is equivalent; wider (no call passes less easily); narrower (none passes more
easily); or incomparable (both, or it cannot be decided). Asking people is between denying and
allowing. Each group of calls that differ has a line, with the rows that only one side has:
+ is wider, - narrower, ± incomparable. If the verdict is incomparable and the data_dir of OLD has
an audit log, its calls that are decided differently are listed.

It is exact over all agents, projects and tools of either side, and one stranger of each:
(other). Conditions are compared where they are bounds (<=, <, >=, >, ==, in, has) on the same
arguments, joined by &&; others only equal themselves. Differing workspaces, schemas of tools
and rules of approval are listed and count; a schema or rule that differs is incomparable.
What only NEW asks of the past is listed, with what becomes of open threads: a day as
candidate makes it known to them.

Exit code 0: nothing of --fail-on was found. 1: it was (incomparable counts as wider and as
narrower). 2: a side does not load.`,
		Example: `  callgate policy diff callgate.yaml next/callgate.yaml
  git show main:policy.csv >old.csv; callgate policy diff old.csv policy.csv --fail-on wider`,
		Args: arguments(2, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if _, known := fails[failOn]; !known {
				return fmt.Errorf("--fail-on is %q; expected wider, narrower or any", failOn)
			}
			var file string
			var err error
			if slices.ContainsFunc(args, needsConfig) {
				if file, err = e.Locate(string(config)); err != nil {
					return err
				}
			}
			var sides [2]*configs.Config
			for i, arg := range args {
				if sides[i], err = loadSide(arg, file); err != nil {
					return err
				}
			}
			return printDiff(c.Context(), e, sides[0], sides[1], failOn, asJSON)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"yaml", "csv"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	configFlag(c, (*string)(&config))
	c.Flags().StringVar(&failOn, "fail-on", "any", "fail on this `CHANGE`: wider, narrower or any")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, an object a line; the last is the summary")
	_ = c.RegisterFlagCompletionFunc("fail-on",
		cobra.FixedCompletions([]string{"wider", "narrower", "any"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// fails says, for each value of --fail-on, at which verdicts a comparison fails.
var fails = map[string]map[compare.Verdict]bool{
	"wider":    {compare.Wider: true, compare.Incomparable: true},
	"narrower": {compare.Narrower: true, compare.Incomparable: true},
	"any":      {compare.Wider: true, compare.Narrower: true, compare.Incomparable: true},
}

// loadSide loads one side of a comparison: a main file, or a policy in place of the
// configuration's own. A side that breaks its own tests is compared all the same.
func loadSide(arg, config string) (*configs.Config, error) {
	if strings.HasSuffix(arg, ".csv") {
		data, err := document.ReadFile(arg)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", arg, err)
		}
		return configs.LoadWithPolicy(config, policy.Source{File: arg, Data: data})
	}
	if isDigest(arg) {
		c, err := configs.LoadUntested(config)
		if err != nil {
			return nil, err
		}
		return configs.LoadKept(c.DataDir, arg)
	}
	return configs.LoadUntested(arg)
}

// needsConfig reports whether a side of a comparison is one only together with --config.
func needsConfig(arg string) bool { return strings.HasSuffix(arg, ".csv") || isDigest(arg) }

// isDigest reports whether a side is named by its digest. A file of that name comes first.
func isDigest(arg string) bool {
	_, err := os.Stat(arg)
	return err != nil && configs.IsDigest(arg)
}

// diffSummary is the last line of JSON.
type diffSummary struct {
	Kind      string          `json:"kind"`
	Verdict   compare.Verdict `json:"verdict"`
	Policy    compare.Verdict `json:"policy"`
	Calls     int             `json:"calls"`
	Differ    int             `json:"differ"`
	Groups    int             `json:"groups"`
	Omitted   int             `json:"omitted"`
	Parts     int             `json:"parts"`
	OldDigest string          `json:"old_digest"`
	NewDigest string          `json:"new_digest"`
	// Recorded counts the recorded calls that both sides have judged; absent where there are none, or the
	// verdict is not incomparable.
	Recorded *lab.ReplaySummary `json:"recorded,omitempty"`
}

// printDiff prints a comparison.
func printDiff(ctx context.Context, e env, old, now *configs.Config, failOn string, asJSON bool) error {
	r, err := lab.Compare(ctx, old.Rules(), now.Rules())
	if err != nil {
		return cli.InternalError{Err: err}
	}
	var recorded *lab.Replay
	if r.Verdict == compare.Incomparable {
		recorded = recordedCalls(ctx, e, old, now)
	}
	if asJSON {
		err = diffJSON(e, r, old, now, recorded)
	} else {
		diffText(e, r)
		if recorded != nil {
			fmt.Fprintf(e.Stdout, "recorded calls of %s, by both sides: ", old.DataDir)
			replayHead(e, recorded.Summary())
			err = replayChanges(e, recorded, defaultLimit)
		}
	}
	if err != nil {
		return err
	}
	if fails[failOn][r.Verdict] {
		return cli.ErrRefused
	}
	return nil
}

// recordedCalls judges the calls of the audit log of the old side by both; nil where there is none, or
// it cannot be read, which is said.
func recordedCalls(ctx context.Context, e env, old, now *configs.Config) *lab.Replay {
	places, err := logFolders(old.DataDir)
	if err != nil {
		return nil // nothing was recorded
	}
	if files, _ := filepath.Glob(filepath.Join(places[0], "audit*.jsonl")); len(files) == 0 { // the pattern is well formed
		return nil
	}
	r, err := lab.NewReplay(now.Rules(), old.Rules(), keptConfigs(e, old), logOf(old, time.Time{}))
	if err == nil {
		err = verifyChains(e, places, true)
	}
	if err == nil {
		err = replayLogs(ctx, e, r, places, search.Query{})
	}
	if err != nil && !errors.Is(err, cli.ErrRefused) { // lines that cannot be read were named
		fmt.Fprintf(e.Stderr, "note: recorded calls are not shown: %v\n", err)
		return nil
	}
	return r
}

func diffJSON(e env, r lab.Difference, old, now *configs.Config, recorded *lab.Replay) error {
	table := cli.NewTable(e.Stdout, true)
	for _, g := range r.Policy.Groups {
		if err := table.Print(struct {
			Kind string `json:"kind"`
			compare.Group
		}{"group", g}); err != nil {
			return err
		}
	}
	for _, p := range r.Parts {
		if err := table.Print(struct {
			Kind string `json:"kind"`
			lab.Part
		}{"part", p}); err != nil {
			return err
		}
	}
	for _, line := range newTerms(r) {
		if err := table.Print(line); err != nil {
			return err
		}
	}
	summary := diffSummary{
		Kind: "summary", Verdict: r.Verdict, Policy: r.Policy.Verdict, Calls: r.Policy.Calls, Differ: r.Policy.Differ,
		Groups: len(r.Policy.Groups), Omitted: r.Policy.Omitted, Parts: len(r.Parts), OldDigest: old.Digest, NewDigest: now.Digest,
	}
	if recorded != nil {
		for _, g := range recorded.Groups() {
			if err := table.Print(changeLine{"recorded", g}); err != nil {
				return err
			}
		}
		counts := recorded.Summary()
		summary.Recorded = &counts
	}
	return table.Print(summary)
}

// marks begin the lines of groups and parts.
var marks = map[compare.Verdict]string{compare.Wider: "+", compare.Narrower: "-", compare.Incomparable: "±"}

// termLine is a line of JSON.
type termLine struct {
	Kind string `json:"kind"`
	Term string `json:"term"`
	Says string `json:"says"`
}

// newTerms says what of the past only the new side asks, and what becomes of threads that are open.
func newTerms(r lab.Difference) (lines []termLine) {
	if r.NewLabels {
		lines = append(lines, termLine{"term", "thread.labels", "conditions that read them fail in threads that began before"})
	}
	for _, term := range r.NewTerms {
		says := "its condition fails in threads that began before"
		switch {
		case term.Caller:
			says = "its condition fails until its window has passed once"
		case term.Window > 0:
			says += ", until its window has passed once"
		}
		lines = append(lines, termLine{"term", term.String(), says})
	}
	return lines
}

func diffText(e env, r lab.Difference) {
	fmt.Fprintf(e.Stdout, "%s: %d of %d agent × project × tool differ", r.Verdict, r.Policy.Differ, r.Policy.Calls)
	if len(r.Parts) > 0 {
		fmt.Fprintf(e.Stdout, ", and %d other parts of the configuration", len(r.Parts))
	}
	fmt.Fprintln(e.Stdout)
	for _, g := range r.Policy.Groups {
		diffGroup(e, g)
	}
	if r.Policy.Omitted > 0 {
		fmt.Fprintf(e.Stdout, "and %d more, in groups that are not listed\n", r.Policy.Omitted)
	}
	for _, p := range r.Parts {
		fmt.Fprintf(e.Stdout, "%s %s %s", marks[p.Change], p.Part, p.Key)
		for _, element := range p.Removed {
			fmt.Fprintf(e.Stdout, "  -%s", element)
		}
		for _, element := range p.Added {
			fmt.Fprintf(e.Stdout, "  +%s", element)
		}
		fmt.Fprintln(e.Stdout)
	}
	for _, line := range newTerms(r) {
		fmt.Fprintf(e.Stdout, "new %s: %s\n", line.Term, line.Says)
	}
}

// diffGroup prints one group: its calls, its reach and its rows.
func diffGroup(e env, g compare.Group) {
	more := ""
	if g.More {
		more = ",…"
	}
	fmt.Fprintf(e.Stdout, "%s %s  %s  %s%s", marks[g.Change], strings.Join(g.Agents, ","), strings.Join(g.Projects, ","),
		strings.Join(g.Tools, ","), more)
	if g.Calls > 1 {
		fmt.Fprintf(e.Stdout, " (%d)", g.Calls)
	}
	fmt.Fprintf(e.Stdout, "  %s → %s ", g.OldReach, g.NewReach)
	for _, row := range g.OldRows {
		fmt.Fprintf(e.Stdout, " -%s", row)
	}
	for _, row := range g.NewRows {
		fmt.Fprintf(e.Stdout, " +%s", row)
	}
	fmt.Fprintln(e.Stdout)
	if g.Open {
		fmt.Fprintln(e.Stdout, "    cannot be compared: by their conditions, calls may pass more easily, less easily, or both")
	}
}
