// Command bench measures the gateway from outside, beside fair baselines or beside
// an earlier version of itself. Each of its commands has a -help.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const overview = `bench measures the gateway from outside:

  bench http   calls of a tool, beside a bare proxy and other baselines
  bench chat   completions of a model, beside a bare proxy
  bench gate   this tree beside an earlier commit, with a verdict

Each has a -help. wrk must be installed. docs/benchmarks.md has the results.
`

// errWorse is the failure of a gate.
var errWorse = errors.New("worse than the base")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := command(ctx, os.Args[1:])
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errWorse):
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "bench: interrupted; what it had started is stopped and removed")
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
}

// The roles in which bench starts itself.
const (
	roleTool  = "be-tool"
	roleModel = "be-model"
	roleProxy = "be-proxy"
)

func command(ctx context.Context, args []string) error {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	switch {
	case name == "http":
		return httpBench(ctx, args[1:])
	case name == "chat":
		return chatBench(ctx, args[1:])
	case name == "gate":
		return gate(ctx, args[1:])
	case name == roleTool:
		return tool()
	case name == roleModel:
		return mock()
	case name == roleProxy && len(args) == 3:
		return proxy(args[1], args[2])
	case name == "" || name == "help" || name == "-help" || name == "--help" || name == "-h":
		fmt.Print(overview)
		return nil
	}
	return fmt.Errorf("found %q, expected http, chat or gate", name)
}

// plan is what every command lets one choose.
type plan struct {
	flags   *flag.FlagSet
	rounds  int
	seconds int
	only    []string // empty: all
	names   []string // what only may name
	memory  bool
	calls   int
}

const maxCalls = 1_000_000

// newPlan declares the flags that the commands share.
func newPlan(command, about string, names []string) *plan {
	p := &plan{flags: flag.NewFlagSet("bench "+command, flag.ContinueOnError), names: names}
	p.flags.Usage = func() {
		fmt.Fprint(p.flags.Output(), about, "\nFlags:\n")
		p.flags.PrintDefaults()
	}
	p.flags.IntVar(&p.rounds, "rounds", 15, "how often each is loaded")
	p.flags.IntVar(&p.seconds, "seconds", 1, "how long each time")
	p.flags.Func("only", "measure these `names` alone, with commas between: "+strings.Join(names, ", "), func(list string) error {
		p.only = strings.Split(list, ",")
		for _, name := range p.only {
			if !slices.Contains(names, name) {
				return fmt.Errorf("expected some of %s", strings.Join(names, ", "))
			}
		}
		return nil
	})
	return p
}

// withMemory declares the flags of the line of memory.
func (p *plan) withMemory() {
	p.flags.BoolVar(&p.memory, "memory", false, "also show how the memory of a fresh gateway grows with calls without keys")
	p.flags.IntVar(&p.calls, "calls", 200_000, "how many calls that is")
}

func (p *plan) parse(args []string) error {
	p.flags.SetOutput(os.Stdout)
	asked := slices.ContainsFunc(args, func(a string) bool { return strings.TrimLeft(a, "-") == "help" || a == "-h" })
	if !asked { // a mistake is told in one line, without all of the help
		p.flags.SetOutput(io.Discard)
	}
	if err := p.flags.Parse(args); err != nil {
		return err
	}
	switch {
	case p.flags.NArg() > 0:
		return fmt.Errorf("found %q, expected flags alone", p.flags.Arg(0))
	case p.rounds < 1 || p.seconds < 1:
		return errors.New("-rounds and -seconds are at least 1")
	case p.memory && (p.calls < 2 || p.calls > maxCalls):
		return fmt.Errorf("-calls: found %d, expected 2 to %d", p.calls, maxCalls)
	}
	return nil
}

func (p *plan) wants(name string) bool { return len(p.only) == 0 || slices.Contains(p.only, name) }

// counts is a list of numbers of connections.
type counts []int

func (c *counts) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(*c)), " ", ","), "[]")
}

func (c *counts) Set(list string) error {
	*c = nil
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return errors.New("expected numbers above 0 with commas between")
		}
		*c = append(*c, n)
	}
	return nil
}
