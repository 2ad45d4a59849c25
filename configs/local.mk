# Installed, so that `_base_` and the examples of the documentation work without the source tree.
nobase_dist_pkgdata_DATA = \
  configs/_base_/datasets/voc0712.yaml \
  configs/_base_/default_runtime.yaml \
  configs/_base_/models/retinanet_r18_fpn.yaml \
  configs/_base_/models/retinanet_r50_fpn.yaml \
  configs/_base_/schedules/schedule_1x.yaml \
  configs/retinanet_r18_bccd.yaml \
  configs/retinanet_shapes.yaml \
  configs/retinanet_voc.yaml \
  configs/retinanet_voc_multiscale.yaml
