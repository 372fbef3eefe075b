package configs

import (
	"path/filepath"

	"github.com/callgate/callgate/policy"
)

// readWorkspaces reads the workspaces file. base is the folder at which relative
// roots start.
func readWorkspaces(root Node, base string) policy.Workspaces {
	spaces := policy.Workspaces{}
	ok := root.Object(Field("workspaces", func(n Node) {
		n.Members("workspaces", func(key, value Node) {
			w := policy.Workspace{Projects: map[string]policy.Project{}}
			value.Object(Field("projects", func(n Node) {
				n.Members("projects", func(key, value Node) {
					w.Projects[key.Value] = readProject(value, base)
				})
			}))
			spaces[key.Value] = w
		})
	}))
	if !ok {
		return spaces
	}
	for _, f := range spaces.Validate() {
		root.At("/workspaces"+Pointer(f.Path)).Fail("%s", f.Message)
	}
	return spaces
}

func readProject(n Node, base string) policy.Project {
	var p policy.Project
	n.Object(
		Field("agents", func(n Node) { n.Texts("agents", &p.Agents) }),
		Field("roots", func(n Node) {
			n.List("folders", func(_ int, item Node) {
				var root string
				item.Text("a folder", &root)
				if root == "" {
					return
				}
				if !filepath.IsAbs(root) {
					root = filepath.Join(base, root)
				}
				p.Roots = append(p.Roots, filepath.Clean(root))
			})
		}),
		Field("hosts", func(n Node) { n.Texts("hosts", &p.Hosts) }),
		Field("resources", func(n Node) {
			p.Resources = map[string][]string{}
			n.Members("resources", func(key, value Node) {
				var allowed []string
				value.Texts("values, or prefixes that end in *", &allowed)
				p.Resources[key.Value] = allowed
			})
		}),
	)
	return p
}
