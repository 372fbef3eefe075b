package mcp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/tool"
)

// resolveVariables returns a program's own variables, sorted by name, with references
// replaced by the secrets. No error holds a secret.
func resolveVariables(ctx context.Context, out *outbound.Client, env map[string]string) ([]string, error) {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := env[name]
		if tool.IsReference(value) {
			if out == nil {
				return nil, fmt.Errorf("its variable %s cannot be read: there are no secrets here", name)
			}
			secret, err := out.Secret(ctx, value)
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

// secretLines returns the lines of the secrets in variables, which are removed from the output
// of a program before anybody sees it. It leaves short lines out, because they occur in texts
// that are no secret.
func secretLines(env map[string]string, resolved []string) (all []string) {
	for _, variable := range resolved {
		name, value, _ := strings.Cut(variable, "=")
		if !tool.IsReference(env[name]) {
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

// minSecretLine is the least length of a line that is removed as part of a secret.
const minSecretLine = 4
