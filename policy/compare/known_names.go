package compare

import (
	"maps"
	"slices"
	"strings"
)

// World holds the names that the rest of both configurations knows. Names of the policies
// themselves are added.
type World struct {
	Agents   []string
	Projects []string // as workspace/project
	Tools    []string
}

// other is the name of a stranger, for people too: "acme/(other)" is any other project of
// acme. Where somebody has that name, the stranger has it in more brackets.
const other = "(other)"

// place is a project by both of its names.
type place struct{ workspace, project string }

func (p place) String() string { return p.workspace + "/" + p.project }

// names is a world with its strangers, indexed by what can stand in a row.
type names struct {
	agents []string
	places map[string][]place  // by domain: "acme/alpha", "acme/*", "*"
	tools  map[string][]string // by tool: "web.search", "web.*", "*"
}

func newNames(w World, files ...file) *names {
	agents, tools, prefixes := map[string]bool{}, map[string]bool{}, map[string]bool{}
	projects := map[string]map[string]bool{} // by workspace
	addPlace := func(domain string) {
		workspace, project, found := strings.Cut(domain, "/")
		if found && projects[workspace] == nil {
			projects[workspace] = map[string]bool{}
		}
		if found && project != "*" {
			projects[workspace][project] = true
		}
	}
	addTool := func(tool string) {
		if prefix, found := strings.CutSuffix(tool, ".*"); found {
			prefixes[prefix] = true
		} else if tool != "*" {
			tools[tool] = true
		}
	}
	addSubject := func(subject string) {
		if !isRole(subject) {
			agents[subject] = true
		}
	}
	for _, agent := range w.Agents {
		addSubject(agent)
	}
	for _, project := range w.Projects {
		addPlace(project)
	}
	for _, tool := range w.Tools {
		addTool(tool)
	}
	for _, f := range files {
		for _, r := range f.rows {
			addSubject(r.Subject)
			addPlace(r.Domain)
			addTool(r.Tool)
		}
		for _, g := range f.grants {
			addSubject(g.Member)
			addPlace(g.Domain)
		}
	}
	agents[stranger(agents)] = true
	for _, in := range projects {
		in[stranger(in)] = true
	}
	projects[stranger(projects)] = map[string]bool{other: true}
	for prefix := range prefixes {
		tools[prefix+"."+strangerBelow(tools, prefix+".")] = true
	}
	tools[stranger(tools)] = true
	n := &names{agents: sorted(agents), places: map[string][]place{}, tools: map[string][]string{}}
	for _, workspace := range sorted(projects) {
		for _, project := range sorted(projects[workspace]) {
			at := place{workspace, project}
			for _, pattern := range []string{at.String(), workspace + "/*", "*"} {
				n.places[pattern] = append(n.places[pattern], at)
			}
		}
	}
	for _, tool := range sorted(tools) {
		n.tools[tool] = append(n.tools[tool], tool)
		for i := len(tool) - 2; i > 0; i-- {
			if tool[i] == '.' && prefixes[tool[:i]] {
				n.tools[tool[:i]+".*"] = append(n.tools[tool[:i]+".*"], tool)
			}
		}
		n.tools["*"] = append(n.tools["*"], tool)
	}
	return n
}

// sorted lists names, strangers last, so that the first example of a group has a real one.
func sorted[V any](known map[string]V) []string {
	return slices.SortedFunc(maps.Keys(known), func(a, b string) int {
		if x, y := strings.HasSuffix(a, ")"), strings.HasSuffix(b, ")"); x != y {
			if x {
				return 1
			}
			return -1
		}
		return strings.Compare(a, b)
	})
}

// triples is how many agents × projects × tools there are, with the strangers.
func (n *names) triples() int { return len(n.agents) * len(n.places["*"]) * len(n.tools["*"]) }

func stranger[V any](known map[string]V) string { return strangerBelow(known, "") }

func strangerBelow[V any](known map[string]V, prefix string) string {
	name := other
	for {
		if _, taken := known[prefix+name]; !taken {
			return name
		}
		name = "(" + name + ")"
	}
}

func isRole(subject string) bool { return strings.HasPrefix(subject, "role:") }
