package native

import (
	"errors"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/server"
)

// maxChoiceBody bounds the body of an answer to a choice.
const maxChoiceBody = 4 << 10

// choose answers what the tool of a call asks a person.
func (f *Face) choose(c *gin.Context, a server.Request) {
	answer, err := readChoice(a.Body)
	if err != nil {
		Refuse(c, bad("The body is not valid: %v.", err))
		return
	}
	call, err := f.options.Executor.Choose(c.Request.Context(), a.Request, c.Param("id"), answer)
	f.writeStatus(c, call, err)
}

// readChoice reads the body of an answer to a choice:
//
//	{"id", "selected"}
//	{"id", "dismissed": true}
func readChoice(data []byte) (a calls.ChoiceAnswer, err error) {
	selected := false
	err = readObject(data, 1, "an object with id and selected", func(name string, first byte) error {
		switch name {
		case "id":
			return isText(name, first)
		case "selected", "dismissed":
			return nil
		}
		return unknown(name)
	}, func(name string, raw []byte) (err error) {
		switch name {
		case "id":
			a.ID, err = textOf(name, raw)
		case "selected":
			selected = true
			if a.Selected, err = strconv.Atoi(string(raw)); err != nil || a.Selected < 0 {
				err = errors.New(`"selected" must be the index of a choice`)
			}
		case "dismissed":
			if a.Dismissed = string(raw) == "true"; !a.Dismissed {
				err = errors.New(`"dismissed" must be true`)
			}
		}
		return err
	})
	switch {
	case err != nil:
		return calls.ChoiceAnswer{}, err
	case a.ID == "":
		return calls.ChoiceAnswer{}, errors.New(`"id" is missing`)
	case selected == a.Dismissed:
		return calls.ChoiceAnswer{}, errors.New(`expected exactly one of "selected" and "dismissed"`)
	}
	return a, nil
}
