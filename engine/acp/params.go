package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/tool"
)

// anySession stands for the session's id in the parameters, which the client replaces.
const anySession = `"session"`

// paramsOf returns the arguments of a call as parameters of its method. Whether they fit is
// judged by their reader.
func paramsOf(call tool.Call) (json.RawMessage, error) {
	members, ok := rawjson.Map(call.Arguments)
	if !ok {
		return nil, errors.New("expected an object")
	}
	for _, own := range []string{"sessionId", "_meta"} {
		if _, given := members[own]; given {
			return nil, fmt.Errorf("%s is not an argument", own)
		}
	}
	members["sessionId"] = json.RawMessage(anySession)
	if call.Run.Tool == wire.MethodTerminalCreate {
		if err := listEnv(members); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"path", "cwd"} {
		if err := absolute(members, name, call.Roots); err != nil {
			return nil, err
		}
	}
	return json.Marshal(members)
}

// absolute makes a relative path start at the first root, as it was judged. An absolute one is
// left as it is.
func absolute(members map[string]json.RawMessage, name string, roots []string) error {
	var path *string
	if raw, given := members[name]; !given || json.Unmarshal(raw, &path) != nil || path == nil {
		return nil //nolint:nilerr // the reader says what is wrong
	}
	if filepath.IsAbs(*path) {
		return nil
	}
	if len(roots) == 0 {
		return fmt.Errorf("%s must be absolute, since the project has no root", name)
	}
	// Not filepath.Join, which would remove .. before links are looked at.
	raw, err := json.Marshal(roots[0] + string(filepath.Separator) + *path)
	members[name] = raw
	return err
}

// listEnv turns the variables of an environment, which are an object, into the protocol's list,
// sorted by name.
func listEnv(members map[string]json.RawMessage) error {
	raw, given := members["env"]
	if !given {
		return nil
	}
	variables, ok := rawjson.Map(raw)
	if !ok {
		return errors.New("/env: expected an object")
	}
	list := []map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		quoted, err := json.Marshal(name)
		if err != nil {
			return err
		}
		list = append(list, map[string]json.RawMessage{"name": quoted, "value": variables[name]})
	}
	encoded, err := json.Marshal(list)
	members["env"] = encoded
	return err
}
