package configs

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/refusal"
)

// readSpaces reads the workspaces file. base is the folder at which relative
// roots start.
func readSpaces(root node, base string) policy.Workspaces {
	spaces := policy.Workspaces{}
	before := len(root.report.faults)
	root.object(field{"workspaces", func(n node) {
		n.members("workspaces", func(key, value node) {
			w := policy.Workspace{Projects: map[string]policy.Project{}}
			value.object(field{"projects", func(n node) {
				n.members("projects", func(key, value node) {
					w.Projects[key.Value] = value.project(base)
				})
			}})
			spaces[key.Value] = w
		})
	}})
	if len(root.report.faults) > before {
		return spaces
	}
	for _, f := range spaces.Validate() {
		root.at("/workspaces"+pointerOf(f.Path)).fail("%s", f.Message)
	}
	return spaces
}

func (n node) project(base string) policy.Project {
	var p policy.Project
	n.object(
		field{"agents", func(n node) { n.texts("agents", &p.Agents) }},
		field{"roots", func(n node) {
			n.list("folders", func(_ int, item node) {
				var root string
				item.text("a folder", &root)
				if root == "" {
					return
				}
				if !filepath.IsAbs(root) {
					root = filepath.Join(base, root)
				}
				p.Roots = append(p.Roots, filepath.Clean(root))
			})
		}},
		field{"hosts", func(n node) { n.texts("hosts", &p.Hosts) }},
		field{"resources", func(n node) {
			p.Resources = map[string][]string{}
			n.members("resources", func(key, value node) {
				var allowed []string
				value.texts("values, or prefixes that end in *", &allowed)
				p.Resources[key.Value] = allowed
			})
		}},
	)
	return p
}

// pointerOf is the JSON Pointer of a way of keys.
func pointerOf(path []string) string {
	var b strings.Builder
	for _, key := range path {
		b.WriteString("/" + refusal.EscapePointer(key))
	}
	return b.String()
}

// Principal is an authenticated caller, and what it may stand for.
type Principal struct {
	Name      string
	KeySHA256 string // lower-case hex
	Agents    []string
	Workspace string
	Projects  []string // of the workspace
	Operator  bool     // may use the admin listener
}

// readPrincipals reads the principals file.
func readPrincipals(root node) []Principal {
	var all []Principal
	names, keys := map[string]int{}, map[string]int{}
	root.object(field{"principals", func(n node) {
		n.list("principals", func(_ int, item node) {
			var p Principal
			before := len(n.report.faults)
			item.object(
				field{"name", func(n node) { n.text("a name", &p.Name) }},
				field{"key_sha256", func(n node) { n.digest(&p.KeySHA256) }},
				field{"agents", func(n node) { n.texts("agents", &p.Agents) }},
				field{"workspace", func(n node) { n.text("a workspace", &p.Workspace) }},
				field{"projects", func(n node) { n.texts("projects", &p.Projects) }},
				field{"operator", func(n node) { n.flag("whether it is an operator", &p.Operator) }},
			)
			if len(n.report.faults) > before {
				return
			}
			for _, key := range []string{"name", "key_sha256", "agents", "workspace", "projects"} {
				if _, _, ok := item.child(key); !ok {
					item.fail("found a principal without %s; expected name, key_sha256, agents, workspace and projects", key)
				}
			}
			if strings.HasPrefix(p.Name, "jwt:") {
				item.at("/name").fail("found %q, which is named like the principal of a token; expected a name that does not begin with jwt:", p.Name)
			}
			item.once("name", "name", p.Name, names)
			item.once("key_sha256", "key", p.KeySHA256, keys)
			for i, agent := range p.Agents {
				if strings.HasPrefix(agent, "role:") {
					item.at(fmt.Sprintf("/agents/%d", i)).fail("found %q, which is named like a role; expected an agent", agent)
				}
			}
			all = append(all, p)
		})
	}})
	return all
}

// once reports a value under a key that an earlier element has too. The value
// itself is not shown.
func (n node) once(key, what, value string, seen map[string]int) {
	_, at, ok := n.child(key)
	if !ok {
		return
	}
	if line, twice := seen[value]; twice {
		at.fail("found the %s of another principal (at line %d); expected each to have its own", what, line)
		return
	}
	seen[value] = at.Line
}

// digest reads a SHA-256 in lower-case hex. What was found is never shown: it
// may be the key itself.
func (n node) digest(into *string) {
	const expected = "expected the SHA-256 of a key: a string of 64 lower-case hexadecimal digits"
	switch {
	case !n.isString():
		n.fail("found %s; %s, in quotes if it looks like a number", n.what(), expected)
		return
	case len(n.Value) != 64:
		n.fail("found a string of another length; %s", expected)
		return
	case strings.Trim(n.Value, "0123456789abcdef") != "":
		n.fail("found other characters; %s", expected)
		return
	}
	*into = n.Value
}

// agentsOf are all agents that a project or a principal names.
func agentsOf(spaces policy.Workspaces, principals []Principal) map[string]bool {
	known := map[string]bool{}
	for _, a := range spaces.Agents() {
		known[a] = true
	}
	for _, p := range principals {
		for _, a := range p.Agents {
			known[a] = true
		}
	}
	return known
}
