"""Real Kafka, started by tests.

apache_kafka.py   a cluster of real Kafka
kafka_node.py     one node of the cluster
kafka_libs.py     the jars of Kafka, and the Java for them
kafka_jvm.py      command lines of JVMs
class_archive.py  archives of classes, with which JVMs start sooner
kafka_tools.py    Kafka's command line tools
kafka_tool_run.py one run of a tool
kafka_output.py   parses the output of the tools
"""
