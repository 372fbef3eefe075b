package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/callgate/callgate/configs"
)

const (
	// configVariable names the main file where the command line does not.
	configVariable = "CALLGATE_CONFIG"
	// hereFile is the main file where neither does.
	hereFile = "callgate.yaml"
)

// builtInNote is said where a command uses the built-in example because nothing names another
// configuration: a forgotten --config must not look like a policy of one's own.
const builtInNote = "callgate: the built-in example is used: there is no --config, no " + configVariable + " and no " + hereFile + " here"

// Locate returns the main file that a command reads: the one of --config, else of
// CALLGATE_CONFIG, else callgate.yaml in the working directory. It is empty for the built-in
// example: where none of them is there, which is said on standard error, or where one of the first
// two is configs.BuiltIn.
func (e env) Locate(flag string) (string, error) {
	named := flag
	if named == "" {
		value, set := os.LookupEnv(configVariable)
		if set && value == "" {
			return "", errors.New(configVariable + " is set, and empty; expected the name of a file")
		}
		named = value
	}
	switch {
	case named == configs.BuiltIn:
		return "", nil
	case named != "":
		return named, nil
	}
	// Whatever stands there is meant, also a link without a target, which loading reports.
	if _, err := os.Lstat(hereFile); !errors.Is(err, fs.ErrNotExist) {
		return hereFile, nil
	}
	fmt.Fprintln(e.Stderr, builtInNote)
	return "", nil
}

// mainFile is the file that a configuration was loaded from, for functions that load it again:
// empty for the built-in example.
func mainFile(c *configs.Config) string {
	if c.Embedded() {
		return ""
	}
	return c.Files[0]
}
