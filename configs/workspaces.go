package configs

import (
	"path/filepath"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/policy"
)

// readWorkspaces reads the workspaces file. base is the folder at which relative
// roots start.
func readWorkspaces(root document.Node, base string) policy.Workspaces {
	workspaces := policy.Workspaces{}
	ok := root.Object(document.Field("workspaces", func(n document.Node) {
		n.Members("workspaces", func(key, value document.Node) {
			key.Matching("the name of a workspace", placePattern)
			w := policy.Workspace{Projects: map[string]policy.Project{}}
			value.Object(document.Field("projects", func(n document.Node) {
				n.Members("projects", func(key, value document.Node) {
					key.Matching("the name of a project", placePattern)
					w.Projects[key.Value] = readProject(value, base)
				})
			}))
			workspaces[key.Value] = w
		})
	}))
	if !ok {
		return workspaces
	}
	root.FailAt("/workspaces", workspaces.Validate())
	return workspaces
}

// placePattern is the name of a workspace or a project, as far as a schema says it.
const placePattern = `^[^/*]+$`

func readProject(n document.Node, base string) policy.Project {
	var p policy.Project
	n.Object(document.Fields(&p,
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
			n.Unique()
		}),
		document.Field("resources", func(n document.Node) {
			p.Resources = map[string][]string{}
			n.Members("resources", func(key, value document.Node) {
				var allowed []string
				value.List("values, or prefixes that end in *", func(_ int, item document.Node) {
					const of = "one of the values, or prefixes that end in *"
					var s string
					item.Text(of, &s)
					item.Matching(of, `^[^*]+\*?$|^\*$`)
					allowed = append(allowed, s)
				})
				value.Unique()
				p.Resources[key.Value] = allowed
			})
		}),
	)...)
	return p
}
