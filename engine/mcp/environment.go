package mcp

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/callgate/callgate/engine/outbound"
)

// inherited are the variables of the gateway's environment that a program is given.
// Whatever else is in it is the gateway's own.
var inherited = []string{"PATH", "HOME", "LANG"}

// environment is what a program is given: what is passed on, then its own variables,
// which hold where both are stated.
func environment(own []string) []string {
	all := []string{}
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			all = append(all, name+"="+value)
		}
	}
	return append(all, own...)
}

// isSecretReference tells whether the value of a variable is the place of one.
func isSecretReference(value string) bool {
	return strings.HasPrefix(value, "env:") || strings.HasPrefix(value, "file:")
}

// resolveVariables are a program's own, with what stands at their places now, in the order of
// their names. No error holds any of it.
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

// secretLines are the lines of the values of variables that stood at places: what a program
// writes is shown without them. A line of few bytes is part of much that is no secret.
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

// minSecretLine is how long a line is that is taken for part of a secret.
const minSecretLine = 4
