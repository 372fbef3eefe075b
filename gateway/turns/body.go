package turns

import (
	"errors"

	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
)

// ReadBody reads the body of a request: an object, and the model that it names. Its error is a
// *Failure.
func ReadBody(body []byte) (members rawjson.Object, model string, _ error) {
	o, err := rawjson.Read(body)
	switch {
	case errors.Is(err, parser.ErrNoObject):
		return nil, "", Bad("", "The body must be a JSON object.")
	case err != nil:
		return nil, "", Bad("", "The body is not a request: %v.", err)
	}
	if model, _ = rawjson.String(o.Get("model")); model == "" {
		return nil, "", Bad("model", "\"model\" must be the name of a model.")
	}
	return o, model, nil
}

// Flag reads a boolean of a request; if it is absent, it is otherwise. Its error is a *Failure.
func Flag(o rawjson.Object, name string, otherwise bool) (bool, error) {
	switch string(o.Get(name)) {
	case "":
		return otherwise, nil
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, Bad(name, "%q must be true or false.", name)
}
