package mcp

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/callgate/callgate/engine/outbound"
)

// inherited lists the variables of the gateway's environment that a program gets. All
// others are the gateway's own.
var inherited = []string{"PATH", "HOME", "LANG"}

// environment is what a program gets: the inherited variables, then its own, which win.
func environment(own []string) []string {
	all := []string{}
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			all = append(all, name+"="+value)
		}
	}
	return append(all, own...)
}

// isSecretReference reports whether the value of a variable refers to a secret.
func isSecretReference(value string) bool {
	return strings.HasPrefix(value, "env:") || strings.HasPrefix(value, "file:")
}

// resolveVariables returns a program's own variables, sorted by name, with references
// replaced by the secrets. No error holds a secret.
func resolveVariables(out *outbound.Client, env map[string]string) ([]string, error) {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := env[name]
		if isSecretReference(value) {
			if out == nil {
				return nil, fmt.Errorf("its variable %s cannot be read: there are no secrets here", name)
			}
			secret, err := out.Secret(value)
			if err != nil {
				return nil, fmt.Errorf("its variable %s cannot be read: %w", name, err)
			}
			if value = secret; strings.ContainsRune(value, 0) {
				return nil, fmt.Errorf("its variable %s holds a NUL, which no variable can", name)
			}
		}
		all = append(all, name+"="+value)
	}
	return all, nil
}

// secretLines returns the lines of secrets in variables: they are cut from what a program
// writes. Short lines are left out, because they are part of much that is no secret.
func secretLines(env map[string]string, resolved []string) (all []string) {
	for _, variable := range resolved {
		name, value, _ := strings.Cut(variable, "=")
		if !isSecretReference(env[name]) {
			continue
		}
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); len(line) >= minSecretLine {
				all = append(all, line)
			}
		}
	}
	return all
}

// minSecretLine is the least length of a line that is taken for part of a secret.
const minSecretLine = 4
