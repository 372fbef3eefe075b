package main

import (
	"errors"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/internal/cli"
)

// faultJSON is a fault or a warning as programs read it.
type faultJSON struct {
	File     string  `json:"file"`
	Line     int     `json:"line"`
	Column   int     `json:"column"`
	Pointer  *string `json:"pointer,omitempty"` // "" is the whole file
	Message  string  `json:"message"`
	Found    string  `json:"found,omitempty"`
	Expected string  `json:"expected,omitempty"`
}

// checkJSON is what config check --format json prints.
type checkJSON struct {
	Valid    bool        `json:"valid"`
	File     string      `json:"file,omitempty"`
	Digest   string      `json:"digest,omitempty"`
	Tools    int         `json:"tools"`
	Faults   []faultJSON `json:"faults"`
	Warnings []faultJSON `json:"warnings"`
}

func faultsJSON(faults document.Faults) []faultJSON {
	all := []faultJSON{}
	for _, f := range faults {
		found, expected := f.Parts()
		one := faultJSON{File: f.File, Line: f.Line, Column: f.Column, Message: f.Message, Found: found, Expected: expected}
		if pointer, ok := f.Pointer(); ok {
			one.Pointer = &pointer
		}
		all = append(all, one)
	}
	return all
}

// checkAsJSON is config check for programs.
func checkAsJSON(e env, flag string) error {
	file, err := e.Locate(flag)
	if err != nil {
		return err
	}
	c, err := configs.Load(file)
	if err == nil {
		err = c.CheckParts(app.Has)
	}
	out := checkJSON{File: file, Faults: []faultJSON{}, Warnings: []faultJSON{}}
	if err != nil {
		var faults document.Faults
		if !errors.As(err, &faults) {
			return err
		}
		out.Faults = faultsJSON(faults)
	} else {
		out = checkJSON{
			Valid: true, File: c.Files[0], Digest: c.Digest, Tools: len(c.Tools.Entries()),
			Faults: []faultJSON{}, Warnings: faultsJSON(c.Warnings),
		}
	}
	line, jsonErr := cli.JSONLine(out)
	if jsonErr != nil {
		return jsonErr
	}
	if _, err := e.Stdout.Write(line); err != nil {
		return err
	}
	if !out.Valid {
		return cli.ErrInvalidLines // exit code 2; the faults were printed
	}
	return nil
}
