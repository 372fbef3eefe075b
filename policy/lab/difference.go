package lab

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/policy/compare"
	"github.com/callgate/callgate/registry"
)

// Part is a part of two configurations, beside the policy, that differs.
type Part struct {
	Part   string          `json:"part"` // workspaces, tool or approvals
	Key    string          `json:"key"`  // acme/alpha agents; a tool's name; a rule's name
	Change compare.Verdict `json:"change"`
	// Removed and Added are elements of a list, up to ten; else digests, the first twelve
	// digits of SHA-256.
	Removed []string `json:"removed"`
	Added   []string `json:"added"`
}

// Difference is how two configurations differ.
type Difference struct {
	Verdict compare.Verdict // of the policy and the parts together
	Policy  compare.Result
	Parts   []Part
	// NewTerms are what the conditions of the new side alone ask of the past: of threads that are open when it is served it is not
	// known.
	NewTerms []history.Term
	// NewLabels says that they alone read labels: what open threads have done before has added none.
	NewLabels bool
}

// Compare compares two configurations. An error means that nothing is known.
func Compare(ctx context.Context, old, now *gateway.Config) (Difference, error) {
	world := compare.World{}
	for _, c := range []*gateway.Config{old, now} {
		world.Agents = slices.AppendSeq(world.Agents, maps.Keys(c.Agents))
		for _, e := range c.Tools.Entries() {
			world.Tools = append(world.Tools, e.Name())
		}
		for workspace, in := range c.Workspaces {
			for project := range in.Projects {
				world.Projects = append(world.Projects, workspace+"/"+project)
			}
		}
	}
	found, err := compare.Compare(ctx, old.Policy, now.Policy, world)
	if err != nil {
		return Difference{}, err
	}
	r := Difference{Verdict: found.Verdict, Policy: found}
	r.Parts = slices.Concat(workspaceParts(old.Workspaces, now.Workspaces), toolParts(old, now), ruleParts(old, now))
	r.NewLabels = now.Policy.ReadsLabels() && !old.Policy.ReadsLabels()
	for _, term := range now.Policy.Terms() {
		if !slices.ContainsFunc(old.Policy.Terms(), func(t history.Term) bool { return t.String() == term.String() }) {
			r.NewTerms = append(r.NewTerms, term)
		}
	}
	for _, part := range r.Parts {
		r.Verdict = r.Verdict.Join(part.Change)
	}
	return r, nil
}

// versions lists the versions of each tool.
func versions(c *gateway.Config) map[string][]*registry.Entry {
	tools := map[string][]*registry.Entry{}
	for _, e := range c.Tools.Entries() {
		tools[e.Name()] = append(tools[e.Name()], e)
	}
	return tools
}

// workspaceParts compares the lists of projects. Each of their elements allows something, so
// more of them are wider.
func workspaceParts(old, now policy.Workspaces) []Part {
	before, after := lists(old), lists(now)
	var parts []Part
	for _, key := range keys(before, after) {
		was, has := before[key], after[key]
		removed, added := without(was, has), without(has, was)
		p := Part{Part: "workspaces", Key: key, Removed: firstOf(removed), Added: firstOf(added)}
		switch {
		case slices.Equal(was, has):
			continue
		case len(removed) > 0 && len(added) > 0, len(removed)+len(added) == 0,
			strings.HasSuffix(key, " roots") && len(was) > 0 && len(has) > 0 && was[0] != has[0]:
			p.Change = compare.Incomparable // relative paths start at the first root
		case len(added) > 0:
			p.Change = compare.Wider
		default:
			p.Change = compare.Narrower
		}
		parts = append(parts, p)
	}
	return parts
}

// lists are those of all projects; only of roots the order counts.
func lists(w policy.Workspaces) map[string][]string {
	all := map[string][]string{}
	for workspace, in := range w {
		for project, p := range in.Projects {
			at := workspace + "/" + project
			all[at+" agents"] = slices.Sorted(slices.Values(p.Agents))
			all[at+" roots"] = p.Roots
			all[at+" hosts"] = slices.Sorted(slices.Values(p.Hosts))
			for name, values := range p.Resources {
				all[at+" resources "+name] = slices.Sorted(slices.Values(values))
			}
		}
	}
	return all
}

// toolParts compares the input schemas of tools, and which versions there are.
func toolParts(old, now *gateway.Config) []Part {
	before, after := schemaDigests(old), schemaDigests(now)
	var parts []Part
	for _, key := range keys(before, after) {
		was, is := before[key], after[key]
		p := Part{Part: "tool", Key: key, Removed: without(was, is), Added: without(is, was), Change: compare.Incomparable}
		switch {
		case slices.Equal(was, is):
			continue
		case len(was) == 0:
			p.Change = compare.Wider
		case len(is) == 0:
			p.Change = compare.Narrower
		}
		parts = append(parts, p)
	}
	return parts
}

// schemaDigests has, for each tool, VERSION=DIGEST of its versions.
func schemaDigests(c *gateway.Config) map[string][]string {
	digests := map[string][]string{}
	for name, entries := range versions(c) {
		for _, e := range entries {
			digests[name] = append(digests[name], e.Version()+"="+digest(e.InputSchema()))
		}
		slices.Sort(digests[name])
	}
	return digests
}

// ruleParts compares the rules of approval that both have. A rule that one side has alone is
// asked by its rows alone, which the policies' comparison knows.
func ruleParts(old, now *gateway.Config) []Part {
	var parts []Part
	for _, name := range slices.Sorted(maps.Keys(old.Approvals)) {
		is, there := now.Approvals[name]
		was := digest(fmt.Appendf(nil, "%+v", old.Approvals[name]))
		if has := digest(fmt.Appendf(nil, "%+v", is)); there && was != has {
			parts = append(parts, Part{Part: "approvals", Key: name, Change: compare.Incomparable, Removed: []string{was},
				Added: []string{has}})
		}
	}
	return parts
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

func keys(a, b map[string][]string) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.SortFunc(all, cmp.Compare[string])
	return slices.Compact(all)
}

func without(list, others []string) []string {
	left := []string{}
	for _, element := range list {
		if !slices.Contains(others, element) {
			left = append(left, element)
		}
	}
	return left
}

// maxElements bounds the elements of a list that are told.
const maxElements = 10

func firstOf(list []string) []string {
	if len(list) > maxElements {
		return append(list[:maxElements:maxElements], "…")
	}
	return list
}
