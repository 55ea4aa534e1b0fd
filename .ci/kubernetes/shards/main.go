// Command check holds a manifest against the types of the Kubernetes API, strictly, and the Job in it against
// what Clifftop needs.
//
//	go -C .ci/kubernetes/shards run . ../../../experiments/scale-out/kubernetes/job.yaml
package main

import (
	"bytes"
	"fmt"
	"os"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "check: want one manifest")
		os.Exit(2)
	}
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "check: %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func check(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	jobs := 0
	for i, doc := range bytes.Split(data, []byte("\n---\n")) {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(doc, &kind); err != nil {
			return err
		}
		switch kind.APIVersion + "/" + kind.Kind {
		case "v1/PersistentVolumeClaim":
			err = yaml.UnmarshalStrict(doc, &corev1.PersistentVolumeClaim{})
		case "batch/v1/Job":
			var job batchv1.Job
			if err = yaml.UnmarshalStrict(doc, &job); err == nil {
				err = indexed(&job)
			}
			jobs++
		default:
			err = fmt.Errorf("%s %s is not expected", kind.APIVersion, kind.Kind)
		}
		if err != nil {
			return fmt.Errorf("document %d: %w", i+1, err)
		}
	}
	if jobs != 1 {
		return fmt.Errorf("%d jobs (want 1)", jobs)
	}
	fmt.Printf("%s: %d bytes keep to the API\n", path, len(data))
	return nil
}

// indexed checks that each pod gets the index and the number of the shards.
func indexed(job *batchv1.Job) error {
	s := &job.Spec
	if s.CompletionMode == nil || *s.CompletionMode != batchv1.IndexedCompletion {
		return fmt.Errorf("completionMode is not Indexed")
	}
	if s.Completions == nil {
		return fmt.Errorf("completions is missing")
	}
	for _, c := range s.Template.Spec.Containers {
		for _, e := range c.Env {
			if e.Name == "CLIFFTOP_SHARDS" && e.Value == fmt.Sprint(*s.Completions) {
				return nil
			}
		}
	}
	return fmt.Errorf("no container has CLIFFTOP_SHARDS=%d, which is completions", *s.Completions)
}
