package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const gateAbout = `bench gate measures this tree, as it stands in its files, beside an earlier commit of it:

  make bench-gate                      beside the last tag
  make bench-gate BASE=v1.2.0          beside that tag, or any commit
  make bench-gate SHORT=-short         by 4 pairs: less than a minute beside the builds
  make bench-gate ARGS="-only calls -rounds 40"
  make bench-gate ARGS=-memory         also what 200,000 calls leave in memory

Both gateways are built (the base in a worktree of git below the folder for temporary
files), started, and loaded in turn, a second each; a pair of such seconds gives one
ratio of this tree to the base. For each of

  calls   /v1/calls with every check, the log in memory, at 1 and at 32 connections
  disk    the same with the log on disk, at 32
  text    chat completions of text through the gateway, at 32
  call    the same of a call, which is judged and handed over
  first   the first token of a short stream, one at a time

it prints the medians of both, and of the ratios the median and the quartiles: half of
the pairs lie between them. It fails, with exit code 1, where processor time or throughput
(for first: the time) is worse by a median over -bound and the lower quartile is worse than
1 as well, so that noise alone does not fail it; what would fail is measured for as long
again, and judged by both. "unclear" is a median over the bound with
quartiles on both sides of 1: repeat it with more -rounds, or on a quieter machine. A base
that is the same commit shows how much the machine varies.

Without -base it is the last tag, else the merge base with origin/main, else HEAD~1; one
that is this very tree is passed over. Any other failure has exit code 2. What it started
and made is removed at the end, on failure and on Ctrl-C too; after a kill -9,
"git worktree prune" forgets the worktree.
`

// The two subjects of a gate.
const (
	ofBase = "base"
	ofThis = "this"
)

func gate(ctx context.Context, args []string) error {
	p := newPlan("gate", gateAbout, []string{"calls", "disk", "text", "call", "first"})
	base := p.flags.String("base", "", "the `commit` to measure beside (default the last tag, or as above)")
	bound := p.flags.Float64("bound", 1.10, "how many times as bad fails")
	short := p.flags.Bool("short", false, "4 pairs, whatever -rounds says")
	p.withMemory()
	if err := p.parse(args); err != nil {
		return err
	}
	if *bound < 1 {
		return fmt.Errorf("-bound: found %v, expected 1 or more", *bound)
	}
	if *short {
		p.rounds = 4
	}
	h, err := newHall()
	if err != nil {
		return err
	}
	defer h.close()
	programs, err := h.buildBoth(ctx, *base)
	if err != nil {
		return err
	}
	tool, model, err := h.servers()
	if err != nil {
		return err
	}
	pair := func(name string, start func(program, name string) (*subject, error)) ([]*subject, error) {
		var both []*subject
		for _, of := range []string{ofBase, ofThis} {
			s, err := start(programs[of], name+"-"+of)
			if err != nil && of == ofBase {
				return nil, fmt.Errorf("%w\nThe base does not start by the configuration of this benchmark: name a later one with -base",
					err)
			}
			if err != nil {
				return nil, err
			}
			s.name = of
			both = append(both, s)
		}
		return both, nil
	}
	calls := func(name, log string) ([]*subject, error) {
		return pair(name, func(program, name string) (*subject, error) {
			return h.callGateway(ctx, program, name, log, callTool("read", tool))
		})
	}
	chat := func() ([]*subject, error) {
		return pair("chat", func(program, name string) (*subject, error) {
			return h.chatGateway(ctx, program, name, memory, model, "chat")
		})
	}
	cases, err := h.gateCases(p, calls, chat)
	if err != nil {
		return err
	}
	before := loadAverage()
	if err := measure(ctx, cases, p.rounds); err != nil {
		return err
	}
	fmt.Printf("%d pairs of %d s; ratios are this/base; load average %s before, %s after\n", p.rounds, p.seconds, before, loadAverage())
	// A dozen figures are judged, and chance fails one of a dozen more often than one
	// alone: what fails must do so with twice as many pairs too.
	if again := slices.DeleteFunc(slices.Clone(cases), func(c *benchCase) bool { return !c.fails(*bound) }); len(again) > 0 {
		for _, c := range again {
			fmt.Printf("%s: over the bound, so measured for as long again\n", c.name)
		}
		if err := measure(ctx, again, p.rounds); err != nil {
			return err
		}
	}
	failed := printVerdicts(cases, *bound)
	if p.memory {
		fresh, err := calls("fresh", memory)
		if err != nil {
			return err
		}
		if err := printMemory(ctx, fresh, p.calls); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%w: %d over the bound of %.2f", errWorse, failed, *bound)
	}
	return nil
}

// servers starts the tool and the model that gateways stand before.
func (h *hall) servers() (tool, model string, err error) {
	if _, tool, err = h.self(roleTool); err != nil {
		return "", "", err
	}
	_, model, err = h.self(roleModel)
	return tool, model, err
}

// gateCases starts the pairs of gateways that are wanted, and returns their loads.
func (h *hall) gateCases(p *plan, calls func(name, log string) ([]*subject, error), chat func() ([]*subject, error)) ([]*benchCase, error) {
	var cases []*benchCase
	add := func(subjects []*subject, all ...*benchCase) {
		for _, c := range all {
			c.subjects, c.reference = subjects, ofBase
			cases = append(cases, c)
		}
	}
	load := func(name string, connections int) *benchCase {
		return &benchCase{name: over(name, connections), metrics: ofRequests(),
			load: func(ctx context.Context, s *subject) (sample, error) {
				return h.requests(ctx, s, s.script, connections, p.seconds)
			}}
	}
	if p.wants("calls") {
		both, err := calls("memory", memory)
		if err != nil {
			return nil, err
		}
		add(both, load("calls", 1), load("calls", 32))
	}
	if p.wants("disk") {
		both, err := calls("disk", h.work)
		if err != nil {
			return nil, err
		}
		add(both, load("calls, log on disk", 32))
	}
	if !p.wants("text") && !p.wants("call") && !p.wants("first") {
		return cases, nil
	}
	both, err := chat()
	if err != nil {
		return nil, err
	}
	w := wires["chat"]
	if p.wants("text") {
		add(both, h.texts(&w, 32, p.seconds))
	}
	if p.wants("call") {
		add(both, h.judgedCalls(&w, 32, p.seconds))
	}
	if p.wants("first") {
		add(both, firstTokens(&w))
	}
	return cases, nil
}

// printVerdicts prints a line for each figure, and counts those that fail.
func printVerdicts(cases []*benchCase, bound float64) (failed int) {
	fmt.Printf("\n%-34s %-22s %8s %8s %6s %6s %6s  verdict\n", "", "", ofBase, ofThis, "ratio", "q25", "q75")
	for _, c := range cases {
		for _, m := range c.gated() {
			base, this := spreadOf(c.values(c.index(ofBase), m)), spreadOf(c.values(c.index(ofThis), m))
			ratio, v := c.verdict(m, bound)
			if v == fails {
				failed++
			}
			fmt.Printf("%-34s %-22s %8.0f %8.0f %6.2f %6.2f %6.2f  %s\n", c.name, m.title, base.median, this.median, ratio.median,
				ratio.q25, ratio.q75, v)
		}
	}
	return failed
}

// verdict are the ratios of this tree to the base by one figure, and what they say.
func (c *benchCase) verdict(m metric, bound float64) (spread, verdict) {
	ratio := spreadOf(pairs(c.values(c.index(ofThis), m), c.values(c.index(ofBase), m)))
	if m.more {
		return ratio, judge(ratio.inverse(), bound)
	}
	return ratio, judge(ratio, bound)
}

// fails reports whether a figure of the case does.
func (c *benchCase) fails(bound float64) bool {
	return slices.ContainsFunc(c.gated(), func(m metric) bool {
		_, v := c.verdict(m, bound)
		return v == fails
	})
}

// gated are the figures of a case that a gate judges: the latency of requests
// follows from their rate.
func (c *benchCase) gated() []metric { return c.metrics[:2] }

// buildBoth builds this tree's gateway and that of the base.
func (h *hall) buildBoth(ctx context.Context, base string) (map[string]string, error) {
	if base == "" {
		var err error
		if base, err = defaultBase(ctx); err != nil {
			return nil, err
		}
	}
	commit, err := git(ctx, "rev-parse", "--verify", "--end-of-options", base+"^{commit}")
	if err != nil {
		return nil, fmt.Errorf("the base %q is no commit here: %w", base, err)
	}
	this, err := git(ctx, "describe", "--always", "--tags", "--dirty=, changed")
	if err != nil {
		return nil, err
	}
	title, err := git(ctx, "log", "-1", "--format=%h %s", commit)
	if err != nil {
		return nil, err
	}
	fmt.Printf("this: %s\nbase: %s\n", this, title)
	tree := filepath.Join(h.work, "base")
	// Made or half made, it is removed; the context may have ended by then.
	h.ends = append(h.ends, func() {
		_, _ = git(context.Background(), "worktree", "remove", "--force", "--force", tree) // fails where it was never made
	})
	if _, err := git(ctx, "worktree", "add", "--detach", tree, commit); err != nil {
		return nil, err
	}
	programs := map[string]string{}
	for of, dir := range map[string]string{ofThis: product, ofBase: tree} {
		fmt.Fprintf(os.Stderr, "building %s\n", of)
		if programs[of], err = h.build(ctx, "", dir); err != nil {
			return nil, err
		}
	}
	return programs, nil
}

// defaultBase is the last tag, the merge base with origin/main or the commit before,
// whichever comes first and is not this very tree.
func defaultBase(ctx context.Context) (string, error) {
	head, err := git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	changed, err := git(ctx, "status", "--porcelain")
	if err != nil {
		return "", err
	}
	for _, find := range [][]string{{"describe", "--tags", "--abbrev=0"}, {"merge-base", "HEAD", "origin/main"}, {"rev-parse", "HEAD~1"}} {
		name, err := git(ctx, find...)
		if err != nil {
			continue // there is none
		}
		if commit, err := git(ctx, "rev-parse", name+"^{commit}"); err == nil && (commit != head || changed != "") {
			return name, nil
		}
	}
	return "", errors.New(
		"no base: there is no tag, no origin/main and no commit before HEAD here; fetch them, or name a commit with -base")
}

// git runs git on this repository, and returns what it prints.
func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", product}, args...)...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}
