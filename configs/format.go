package configs

import (
	"path/filepath"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/policy"
)

// Format returns a configuration file in its usual layout, by the ending of its name: a policy
// (.csv), JSON (.json) or YAML. It means what it did, and its comments stay.
func Format(file string, data []byte) ([]byte, error) {
	if filepath.Ext(file) != ".csv" {
		return document.Format(file, data)
	}
	if f := document.CheckText(file, data); f != nil {
		return nil, document.Faults{f}
	}
	out, err := policy.Format(file, data)
	if err != nil {
		var l loader
		l.addPolicyErrors(file, err)
		return nil, l.report.Err()
	}
	return out, nil
}

// Seal returns a configuration file with its end line, which programs that write templates leave
// out. A file that is not well-formed with it is refused.
func Seal(file string, data []byte) ([]byte, error) {
	if filepath.Ext(file) == ".json" {
		return nil, &document.Fault{File: file, Message: "found JSON, which has no end line; expected YAML or CSV"}
	}
	sealed, err := document.Seal(file, data)
	if err != nil {
		return nil, err
	}
	if filepath.Ext(file) == ".csv" {
		_, err = Format(file, sealed)
		return sealed, err
	}
	var r document.Report
	document.ReadYAML(&r, file, sealed)
	return sealed, r.Err()
}

// OwnFiles are the files of a configuration that people write: its YAML files and its policy.
func (c *Config) OwnFiles() []string {
	var all []string
	for _, file := range c.Files {
		if ext := filepath.Ext(file); ext == ".yaml" || ext == ".yml" || ext == ".csv" {
			all = append(all, file)
		}
	}
	return all
}
