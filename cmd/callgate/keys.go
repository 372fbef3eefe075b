package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/cmd/callgate/internal/cmdenv"
	"github.com/callgate/callgate/identity"
)

// principalName keeps the printed entry plain YAML.
var principalName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func newKeys(e cmdenv.Env) *cobra.Command {
	var name, workspace string
	var agents, projects []string
	c := &cobra.Command{
		Use:   "new",
		Short: "Make a key and its entry for the principals file",
		Long: `Make a key of 256 random bits. The key is printed once, to standard error; give it
to the caller, who sends it as "Authorization: Bearer KEY". The entry for the
principals file, which holds only its SHA-256, is printed to standard output.`,
		Example: `  callgate keys new --name ci >> principals.yaml   # then edit, and end with "# end"`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			for _, word := range append(append([]string{name, workspace}, agents...), projects...) {
				if !principalName.MatchString(word) {
					return fmt.Errorf("%q is no name for an entry; expected letters, digits, dots, dashes and underscores, at most 64", word)
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
	c.Flags().StringSliceVar(&agents, "agents", []string{"Analyst"}, "the `AGENTS` that it stands for")
	c.Flags().StringVar(&workspace, "workspace", "acme", "its `WORKSPACE`")
	c.Flags().StringSliceVar(&projects, "projects", []string{"alpha"}, "its `PROJECTS`")
	return cmdenv.Group("keys", "Make keys for callers and for callback URLs", c, newCallbackKeys(e))
}
