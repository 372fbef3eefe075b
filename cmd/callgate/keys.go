package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/identity"
)

// principalName keeps the printed entry plain YAML.
var principalName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func newKeys(e env) *cobra.Command {
	var name, workspace, config string
	var agents, projects []string
	c := &cobra.Command{
		Use:   "new",
		Short: "Make a key and its entry for the principals file",
		Long: `Make a key of 256 random bits, which the caller sends as "Authorization: Bearer KEY". It is
printed once, to standard error. Its entry for the principals file, with only its SHA-256,
goes to standard output.`,
		Example: `  { echo principals:; callgate keys new --name ci; echo "# end"; } > principals.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f := c.Flags(); !f.Changed("agents") || !f.Changed("workspace") || !f.Changed("projects") {
				here, err := ownNames(e, config)
				if err != nil {
					return err
				}
				if !f.Changed("agents") {
					agents = here.agents
				}
				if !f.Changed("workspace") {
					workspace = here.workspace
				}
				if !f.Changed("projects") {
					projects = []string{here.project}
				}
			}
			for _, word := range append(append([]string{name, workspace}, agents...), projects...) {
				if !principalName.MatchString(word) {
					return fmt.Errorf("%q is no name for an entry; expected letters, digits, dots, dashes and underscores, at most 64",
						word)
				}
			}
			key, sha := identity.NewAPIKey()
			fmt.Fprintf(e.Stdout, "  - name: %s\n    key_sha256: %s\n    agents: [%s]\n    workspace: %s\n    projects: [%s]\n",
				name, sha, strings.Join(agents, ", "), workspace, strings.Join(projects, ", "))
			fmt.Fprintf(e.Stderr, "key of %s, shown once: %s\n", name, key)
			return nil
		},
	}
	c.Flags().StringVar(&name, "name", "caller", "the principal's `NAME`")
	c.Flags().StringSliceVar(&agents, "agents", nil, "its `AGENTS` (default: the default agent, else those of the project)")
	c.Flags().StringVar(&workspace, "workspace", "", "its `WORKSPACE` (default: the configuration's)")
	c.Flags().StringSliceVar(&projects, "projects", nil, "its `PROJECTS` (default: the configuration's, else the first)")
	configFlag(c, &config)
	return group("keys", "Make keys for callers and for callback URLs", c, newCallbackKeys(e))
}

// place is a project with its agents.
type place struct {
	agents             []string
	workspace, project string
}

// ownNames is the project that the configuration takes by default, or else its first one. A
// configuration that does not load, for instance since its principals file is yet to be written, has
// words in their place that are to be edited.
func ownNames(e env, config string) (place, error) {
	file, err := e.Locate(config)
	if err != nil {
		return place{}, err
	}
	loaded, err := configs.LoadUntested(file)
	if err != nil {
		fmt.Fprintf(e.Stderr, "note: the configuration does not load, so replace AGENT, WORKSPACE and PROJECT in the entry\n")
		return place{[]string{"AGENT"}, "WORKSPACE", "PROJECT"}, nil //nolint:nilerr // the note says it, and a key is made all the same
	}
	p := place{workspace: loaded.Defaults.Workspace, project: loaded.Defaults.Project}
	if all := loaded.Workspaces.Places(""); len(all) > 0 && !slices.Contains(all, p.workspace+"/"+p.project) {
		p.workspace, p.project, _ = strings.Cut(all[0], "/")
	}
	p.agents = loaded.Workspaces[p.workspace].Projects[p.project].Agents
	if slices.Contains(p.agents, loaded.Defaults.Agent) {
		p.agents = []string{loaded.Defaults.Agent} // a caller of several has to name one in each request
	}
	return p, nil
}
