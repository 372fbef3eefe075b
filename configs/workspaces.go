package configs

import (
	"path/filepath"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/refusal"
)

// readWorkspaces reads the workspaces file. base is the folder at which relative
// roots start.
func readWorkspaces(root document.Node, base string) policy.Workspaces {
	workspaces := policy.Workspaces{}
	ok := root.Object(document.Field("workspaces", func(n document.Node) {
		n.Members("workspaces", func(key, value document.Node) {
			w := policy.Workspace{Projects: map[string]policy.Project{}}
			value.Object(document.Field("projects", func(n document.Node) {
				n.Members("projects", func(key, value document.Node) {
					w.Projects[key.Value] = readProject(value, base)
				})
			}))
			workspaces[key.Value] = w
		})
	}))
	if !ok {
		return workspaces
	}
	for _, f := range workspaces.Validate() {
		root.At("/workspaces"+refusal.Pointer(f.Path...)).Fail("%s", f.Message)
	}
	return workspaces
}

func readProject(n document.Node, base string) policy.Project {
	var p policy.Project
	n.Object(
		document.Texts("agents", "agents", &p.Agents),
		document.Field("roots", func(n document.Node) {
			n.List("folders", func(_ int, item document.Node) {
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
		document.Texts("hosts", "hosts", &p.Hosts),
		document.Field("resources", func(n document.Node) {
			p.Resources = map[string][]string{}
			n.Members("resources", func(key, value document.Node) {
				var allowed []string
				value.Texts("values, or prefixes that end in *", &allowed)
				p.Resources[key.Value] = allowed
			})
		}),
	)
	return p
}
