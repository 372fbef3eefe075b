package grammar

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// automaton is a deterministic automaton over characters. State 0 is the start.
type automaton struct {
	accepts []bool
	edges   [][]edge
}

type edge struct {
	on class
	to int
}

// maxStates bounds an automaton while it is built.
const maxStates = 8192

// errTooLarge says of a constraint that its automaton is too large.
var errTooLarge = fmt.Errorf("needs more than %d states", maxStates)

// explore builds an automaton from a start state and the steps from each state.
func explore[S comparable](start S, accepts func(S) bool, steps func(S) []stepTo[S]) (*automaton, error) {
	number := map[S]int{start: 0}
	queue := []S{start}
	a := &automaton{}
	for at := 0; at < len(queue); at++ {
		a.accepts = append(a.accepts, accepts(queue[at]))
		targets := map[int]class{}
		for _, step := range steps(queue[at]) {
			to, known := number[step.to]
			if !known {
				if to = len(queue); to == maxStates {
					return nil, errTooLarge
				}
				number[step.to] = to
				queue = append(queue, step.to)
			}
			targets[to] = append(targets[to], step.on...)
		}
		var edges []edge
		for _, to := range slices.Sorted(maps.Keys(targets)) {
			edges = append(edges, edge{normal(targets[to]), to})
		}
		a.edges = append(a.edges, edges)
	}
	return a.minimal(), nil
}

type stepTo[S comparable] struct {
	on class
	to S
}

// minimal returns the automaton without states that lead nowhere, with states that accept
// the same joined; nil where it accepts nothing.
func (a *automaton) minimal() *automaton {
	live := a.live()
	if !live[0] {
		return nil
	}
	group := make([]int, len(a.accepts))
	for s := range group {
		if a.accepts[s] {
			group[s] = 1
		}
	}
	for count := 0; ; {
		next, numbers := make([]int, len(group)), map[string]int{}
		for s := range group {
			key := a.signature(s, group, live)
			if _, known := numbers[key]; !known {
				numbers[key] = len(numbers)
			}
			next[s] = numbers[key]
		}
		group = next
		if len(numbers) == count {
			break
		}
		count = len(numbers)
	}
	return a.joined(group, live)
}

func (a *automaton) signature(s int, group []int, live []bool) string {
	targets := map[int]class{}
	for _, e := range a.edges[s] {
		if live[e.to] {
			targets[group[e.to]] = append(targets[group[e.to]], e.on...)
		}
	}
	var b strings.Builder
	fmt.Fprint(&b, group[s])
	for _, to := range slices.Sorted(maps.Keys(targets)) {
		fmt.Fprint(&b, "|", to, normal(targets[to]))
	}
	return b.String()
}

func (a *automaton) joined(group []int, live []bool) *automaton {
	out, number := &automaton{}, map[int]int{}
	var visit func(s int) int
	visit = func(s int) int {
		if n, known := number[group[s]]; known {
			return n
		}
		n := len(out.accepts)
		number[group[s]] = n
		out.accepts = append(out.accepts, a.accepts[s])
		out.edges = append(out.edges, nil)
		targets := map[int]class{}
		for _, e := range a.edges[s] {
			if live[e.to] {
				to := visit(e.to)
				targets[to] = append(targets[to], e.on...)
			}
		}
		for _, to := range slices.Sorted(maps.Keys(targets)) {
			out.edges[n] = append(out.edges[n], edge{normal(targets[to]), to})
		}
		return n
	}
	visit(0)
	return out
}

// live reports of each state whether an accepting one can be reached.
func (a *automaton) live() []bool {
	live := slices.Clone(a.accepts)
	before := make([][]int, len(live))
	var queue []int
	for s, edges := range a.edges {
		if live[s] {
			queue = append(queue, s)
		}
		for _, e := range edges {
			before[e.to] = append(before[e.to], s)
		}
	}
	for len(queue) > 0 {
		s := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, p := range before[s] {
			if !live[p] {
				live[p] = true
				queue = append(queue, p)
			}
		}
	}
	return live
}

// expression writes an automaton as rules, one for each state where several ways meet, and
// returns the start. Each character is written by write, and end follows the last.
func (c *compiler) expression(hint string, a *automaton, write func(class) expr, end expr) (expr, error) {
	if a == nil {
		return nil, nil
	}
	if c.states += len(a.accepts); c.states > maxGrammarStates {
		return nil, fmt.Errorf("needs more than %d rules", maxGrammarStates)
	}
	entered := make([]int, len(a.accepts))
	entered[0] = 1
	for _, edges := range a.edges {
		for _, e := range edges {
			entered[e.to]++
		}
	}
	names := make([]reference, len(a.accepts))
	for s := range names {
		if (entered[s] > 1 || s == 0) && len(a.edges[s]) > 0 {
			names[s] = reference(c.rules.name(hint))
		}
	}
	body := func(s int) expr { return nil }
	place := func(s int) expr {
		if names[s] != "" {
			return names[s]
		}
		return body(s)
	}
	body = func(s int) expr {
		var ways []expr
		for _, e := range a.edges[s] {
			ways = append(ways, seq(write(e.on), place(e.to)))
		}
		switch {
		case !a.accepts[s]:
			return oneOf(ways...)
		case end == literal(""):
			return optional(oneOf(ways...))
		}
		return oneOf(append(ways, end)...)
	}
	for s, name := range names {
		if name != "" {
			c.rules.list = append(c.rules.list, rule{string(name), body(s)})
		}
	}
	return place(0), nil
}
