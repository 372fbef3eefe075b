package registry

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/tool"
)

// The bounds of the variables that a command is given.
const (
	maxVariables     = 64
	maxVariableBytes = 8 << 10 // of a value, as it is stated
)

// variable is the name of a variable of the environment (POSIX, in either case).
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// completeEnv completes the variables that a command is given. A message never holds a
// value: it may be a secret.
func completeEnv(r *tool.Run, report func(string, ...string)) {
	r.Env = maps.Clone(r.Env)
	if len(r.Env) > 0 && len(r.Command) == 0 {
		report("found env; expected it only with a command", "run", "env")
		return
	}
	if len(r.Env) > maxVariables {
		report(fmt.Sprintf("found %d variables; expected at most %d", len(r.Env), maxVariables), "run", "env")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		switch value := r.Env[name]; {
		case !variable.MatchString(name):
			report(fmt.Sprintf("found the variable %s; expected a name of letters, digits and _, which does not begin with a digit",
				parser.Quote(name)), "run", "env", name)
		case len(value) > maxVariableBytes || strings.ContainsRune(value, 0):
			report(fmt.Sprintf("found a value of another form; expected at most %d bytes without NUL, or env:NAME or file:PATH, the place of a value", maxVariableBytes), "run", "env", name)
		}
	}
}
