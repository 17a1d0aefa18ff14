// Command custom-metrics serves the API of custom metrics with the library of real adapters: the metric NAME of a pod is its annotation metrics/NAME.
package main

import (
	"context"
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
	"k8s.io/metrics/pkg/apis/custom_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/cmd"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider/defaults"
)

type annotations struct {
	defaults.DefaultCustomMetricsProvider
	client dynamic.Interface
}

func (a annotations) GetMetricByName(ctx context.Context, name types.NamespacedName, info provider.CustomMetricInfo, _ labels.Selector) (*custom_metrics.MetricValue, error) {
	pods := a.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
	pod, err := pods.Namespace(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	value, err := resource.ParseQuantity(pod.GetAnnotations()["metrics/"+info.Metric])
	if err != nil {
		return nil, provider.NewMetricNotFoundForError(info.GroupResource, info.Metric, name.Name)
	}
	object := custom_metrics.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: name.Namespace, Name: name.Name}
	metric := custom_metrics.MetricIdentifier{Name: info.Metric}
	return &custom_metrics.MetricValue{DescribedObject: object, Metric: metric, Timestamp: metav1.Now(), Value: value}, nil
}

func (annotations) GetMetricBySelector(context.Context, string, labels.Selector, provider.CustomMetricInfo, labels.Selector) (*custom_metrics.MetricValueList, error) {
	return &custom_metrics.MetricValueList{}, nil
}

func main() {
	adapter := cmd.AdapterBase{Name: "custom-metrics"}
	if err := adapter.Flags().Parse(os.Args); err != nil {
		klog.Fatal(err)
	}
	client, err := adapter.DynamicClient()
	if err != nil {
		klog.Fatal(err)
	}
	adapter.WithCustomMetrics(annotations{client: client})
	if err := adapter.Run(context.Background()); err != nil {
		klog.Fatal(err)
	}
}
