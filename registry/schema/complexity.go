package schema

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The cost of evaluation is bounded before the first call: for every value, the
// number of schemas that can apply to it at once is computed:
// branches add up, and a recursion that comes back on two ways doubles at each
// level. The states of this computation are the sets of schemas, with their
// multiplicities, that one value can meet.
const (
	maxPerValue = 256    // schemas that may apply to one value
	maxStates   = 20_000 // different sets of them
)

// multiset is a set of schemas with multiplicities.
type multiset map[*node]int

// complexity explains why a schema cannot be checked in bounded time, or returns "".
func (n *node) complexity() string {
	c := &complexityCheck{ids: map[*node]int{}, seen: map[string]bool{}}
	start, ok := c.expand(multiset{n: 1})
	if !ok {
		return c.problem()
	}
	queue := []multiset{start}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		if next.patterns() > maxPerValue {
			return c.problem() // before each is tried on each name
		}
		for _, step := range c.steps(next) {
			settled, ok := c.expand(step)
			if !ok {
				return c.problem()
			}
			key := c.key(settled)
			if c.seen[key] {
				continue
			}
			c.seen[key] = true
			if len(c.seen) > maxStates {
				return c.problem()
			}
			queue = append(queue, settled)
		}
	}
	return ""
}

type complexityCheck struct {
	ids  map[*node]int
	seen map[string]bool
}

func (c *complexityCheck) problem() string {
	return fmt.Sprintf("found a schema too costly to evaluate; expected one of which at most %d schemas apply to any one value: fewer branches inside branches, and no recursion that returns through two of them", maxPerValue)
}

// expand adds the schemas beside those of a multiset: all that the same value
// meets.
func (c *complexityCheck) expand(in multiset) (multiset, bool) {
	out, total := multiset{}, 0
	var add func(n *node, times int) bool
	add = func(n *node, times int) bool {
		if n.empty {
			return true
		}
		total += times
		if total > maxPerValue {
			return false
		}
		out[n] += times
		for _, b := range n.inPlace() {
			if !add(b, times) {
				return false
			}
		}
		return n.not == nil || add(n.not, times)
	}
	for n, times := range in {
		if !add(n, times) {
			return nil, false
		}
	}
	return out, true
}

// steps lists the crowds that the parts of a value can meet: a member of each
// name that is listed anywhere, a member of any other name, an item at each
// index that is listed, an item beyond, and a name.
func (c *complexityCheck) steps(in multiset) []multiset {
	names := map[string]bool{}
	longest := 0
	for n := range in {
		for name := range n.properties {
			names[name] = true
		}
		longest = max(longest, len(n.prefixItems))
	}
	var list []multiset
	add := func(step multiset) {
		if len(step) > 0 {
			list = append(list, step)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		add(in.member(name, true))
	}
	add(in.member("", false))
	for i := range longest + 1 {
		add(in.item(i))
	}
	named := multiset{}
	for n, times := range in {
		named.add(n.propertyNames, times)
	}
	add(named)
	return list
}

// patterns is how many patterns a member that is not listed may match.
func (c multiset) patterns() int {
	all := 0
	for n := range c {
		all += len(n.patternProperties)
	}
	return all
}

func (c multiset) add(n *node, times int) {
	if n != nil {
		c[n] += times
	}
}

// member returns the schemas that a member meets. A name that is not listed may match every
// pattern.
func (c multiset) member(name string, listed bool) multiset {
	out := multiset{}
	for n, times := range c {
		p, known := n.properties[name]
		known = known && listed
		if known {
			out.add(p, times)
		}
		for _, p := range n.patternProperties {
			if !listed || p.expr.MatchString(name) {
				known = known || listed
				out.add(p.node, times)
			}
		}
		if !known {
			out.add(n.additionalProperties, times)
		}
		out.add(n.unevaluatedProperties, times)
	}
	return out
}

func (c multiset) item(i int) multiset {
	out := multiset{}
	for n, times := range c {
		if i < len(n.prefixItems) {
			out.add(n.prefixItems[i], times)
		} else {
			out.add(n.items, times)
		}
		out.add(n.contains, times)
		out.add(n.unevaluatedItems, times)
	}
	return out
}

func (c *complexityCheck) key(in multiset) string {
	parts := make([]string, 0, len(in))
	for n, times := range in {
		id, ok := c.ids[n]
		if !ok {
			id = len(c.ids)
			c.ids[n] = id
		}
		parts = append(parts, strconv.Itoa(id)+"*"+strconv.Itoa(times))
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}
