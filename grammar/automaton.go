package grammar

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
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
	return a.joined(a.groups(live), live)
}

// maxRefined bounds the work of groups: how many states are looked at in all rounds. A long loop
// tells one state apart a round.
const maxRefined = 200_000

// groups numbers the states so that those with the same number accept the same. Beyond maxRefined
// each state has a number of its own: the rules are more, and as right.
func (a *automaton) groups(live []bool) []int {
	group := a.distances(live)
	for count, refined := 0, 0; ; {
		if refined += len(group); refined > maxRefined {
			for s := range group {
				group[s] = s
			}
			return group
		}
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
			return group
		}
		count = len(numbers)
	}
}

func (a *automaton) signature(s int, group []int, live []bool) string {
	targets := map[int]class{}
	for _, e := range a.edges[s] {
		if live[e.to] {
			targets[group[e.to]] = append(targets[group[e.to]], e.on...)
		}
	}
	b := binary.AppendVarint(nil, int64(group[s]))
	for _, to := range slices.Sorted(maps.Keys(targets)) {
		set := normal(targets[to])
		b = binary.AppendVarint(binary.AppendVarint(b, int64(to)), int64(len(set)))
		for _, part := range set {
			b = binary.AppendVarint(binary.AppendVarint(b, int64(part.from)), int64(part.to))
		}
	}
	return string(b)
}

// distances groups the states by the length of the shortest and of the longest text that they accept:
// states that accept the same agree in both. So a long chain is told apart at once, not by one
// state a round. Dead states are a group of their own.
func (a *automaton) distances(live []bool) []int {
	const none = -1
	shortest, longest := make([]int, len(live)), make([]int, len(live))
	before, left := make([][]int, len(live)), make([]int, len(live))
	var near, ends []int
	for s, edges := range a.edges {
		shortest[s], longest[s] = none, none // longest: endless, unless it is found
		if a.accepts[s] {
			shortest[s] = 0
			near = append(near, s)
		}
		for _, e := range edges {
			if live[e.to] {
				before[e.to] = append(before[e.to], s)
				left[s]++
			}
		}
		if live[s] && left[s] == 0 {
			ends = append(ends, s)
			longest[s] = 0
		}
	}
	for ; len(near) > 0; near = near[1:] {
		for _, s := range before[near[0]] {
			if shortest[s] == none {
				shortest[s] = shortest[near[0]] + 1
				near = append(near, s)
			}
		}
	}
	far := make([]int, len(live))
	for ; len(ends) > 0; ends = ends[1:] {
		for _, s := range before[ends[0]] {
			far[s] = max(far[s], longest[ends[0]]+1)
			if left[s]--; left[s] == 0 {
				longest[s] = far[s]
				ends = append(ends, s)
			}
		}
	}
	group, numbers := make([]int, len(live)), map[[2]int]int{}
	for s := range group {
		key := [2]int{shortest[s], longest[s]}
		if _, known := numbers[key]; !known {
			numbers[key] = len(numbers)
		}
		group[s] = numbers[key]
	}
	return group
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
